package servertest

import "strings"

// slots is how many slots a Cluster has.
const slots = 16384

// Slot is the slot of a key: CRC16 (XMODEM) of the part between the first { and the next } where
// there is one and it is not empty, else of the whole key.
func Slot(key string) int {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			key = tag
		}
	}
	var crc uint16
	for _, b := range []byte(key) {
		crc ^= uint16(b) << 8
		for range 8 {
			carry := crc >> 15
			crc = crc<<1 ^ carry*0x1021
		}
	}
	return int(crc) % slots
}

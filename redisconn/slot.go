package redisconn

import (
	"strconv"
	"strings"
	"sync"
)

// Slots is the number of slots of a Redis Cluster.
const Slots = 16384

// Slot returns the slot of a key: the CRC16 of its tag, the first {…} that is not empty, or else of
// the whole key. Source: the Redis Cluster specification, "Hash tags".
func Slot(key string) int {
	if tag, ok := hashTag(key); ok {
		key = tag
	}
	return int(crc16(key)) % Slots
}

func hashTag(key string) (string, bool) {
	_, rest, ok := strings.Cut(key, "{")
	if !ok {
		return "", false
	}
	tag, _, ok := strings.Cut(rest, "}")
	return tag, ok && tag != ""
}

// Tag returns a text that, in braces at the beginning of another key, puts that key into the slot
// of key. That is key's own tag, or key itself where it has no closing brace. What is left are
// names such as a}b or {}x, which nothing in braces can repeat: for these it is the smallest number
// with their slot.
func Tag(key string) string {
	if tag, ok := hashTag(key); ok {
		return tag
	}
	if !strings.Contains(key, "}") {
		return key
	}
	return numberFor(Slot(key))
}

var (
	numbersMu sync.Mutex
	numbers   = map[int]string{}
)

func numberFor(slot int) string {
	numbersMu.Lock()
	defer numbersMu.Unlock()
	tag, ok := numbers[slot]
	for n := 0; !ok; n++ {
		tag = strconv.Itoa(n)
		ok = int(crc16(tag))%Slots == slot
	}
	numbers[slot] = tag
	return tag
}

// crc16 is CRC-16/XMODEM: polynomial 0x1021, from 0, not reflected.
func crc16(s string) uint16 {
	var crc uint16
	for i := range len(s) {
		crc = crc<<8 ^ crcTable[byte(crc>>8)^s[i]]
	}
	return crc
}

var crcTable = func() (table [256]uint16) {
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			carry := crc&0x8000 != 0
			if crc <<= 1; carry {
				crc ^= 0x1021
			}
		}
		table[i] = crc
	}
	return table
}()

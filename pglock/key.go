package pglock

import (
	"crypto/md5"  //nolint:gosec // a convention of others
	"crypto/sha1" //nolint:gosec // a convention of others
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/driver"
)

// key is what an advisory lock is taken of: 64 bits, or two numbers of 32. The server keeps the two
// forms apart.
type key struct {
	pair bool
	bits uint64
}

// String is the key as arguments in SQL.
func (k key) String() string {
	if k.pair {
		return fmt.Sprintf("%d, %d", int32(k.bits>>32), int32(k.bits)) //nolint:gosec // the bits as they are
	}
	return strconv.FormatInt(int64(k.bits), 10) //nolint:gosec // the bits as they are
}

// conventions are how programs make the key of a name.
var conventions = map[string]func(name string) (key, error){
	// 64 bits of a good hash: of a million names two have the same key once in 37 million
	// databases.
	"interlock": func(name string) (key, error) {
		sum := sha256.Sum256([]byte("interlock:" + name))
		return key{bits: binary.BigEndian.Uint64(sum[:])}, nil
	},
	"with_advisory_lock": func(name string) (key, error) {
		return key{pair: true, bits: uint64(crc(name)&0x7fffffff) << 32}, nil
	},
	"django":  func(name string) (key, error) { return key{bits: uint64(int64(int32(crc(name))))}, nil }, //nolint:gosec // with its sign
	"symfony": func(name string) (key, error) { return key{bits: uint64(crc(name))}, nil },
	"tooz": func(name string) (key, error) {
		sum := md5.Sum([]byte(name)) //nolint:gosec // a convention of others
		return key{pair: true, bits: uint64(sum[0])<<32 | uint64(sum[1])}, nil
	},
	"dotnet": dotnet,
	"number": number64,
}

func crc(name string) uint32 { return crc32.ChecksumIEEE([]byte(name)) }

// dotnet is the key that DistributedLock for .NET takes: of up to nine characters of ASCII seven
// bits each and what tells how many they are, else the number that is written in hexadecimal
// digits, else a hash.
func dotnet(name string) (key, error) {
	const most = 9
	if len(name) <= most && strings.IndexFunc(name, func(r rune) bool { return r > 127 }) < 0 {
		bits := uint64(0)
		for _, c := range []byte(name) {
			bits = bits<<7 | uint64(c)
		}
		rest := 7 * (most - len(name))
		return key{pair: true, bits: bits<<(rest+1) | (1<<rest - 1)}, nil
	}
	if high, low, two := strings.Cut(name, ","); two && len(high) == 8 && len(low) == 8 || len(name) == 16 {
		if bits, err := strconv.ParseUint(high+low, 16, 64); err == nil {
			return key{pair: two, bits: bits}, nil
		}
	}
	sum := sha1.Sum([]byte(name)) //nolint:gosec // a convention of others
	return key{bits: binary.LittleEndian.Uint64(sum[:])}, nil
}

// number64 takes a name for the key itself: a number of 64 bits, or two of 32. Blanks may stand
// around it, as before a minus that would begin a flag.
func number64(name string) (key, error) {
	name = strings.TrimSpace(name)
	if high, low, two := strings.Cut(name, ","); two {
		h, err := strconv.ParseInt(high, 10, 32)
		l, err2 := strconv.ParseInt(strings.TrimSpace(low), 10, 32)
		if err == nil && err2 == nil {
			return key{pair: true, bits: uint64(h)<<32 | uint64(uint32(l))}, nil //nolint:gosec // the bits as they are
		}
	} else if n, err := strconv.ParseInt(name, 10, 64); err == nil {
		return key{bits: uint64(n)}, nil //nolint:gosec // the bits as they are
	}
	return key{}, fmt.Errorf("%w: by keys=number want a number of 64 bits, or two of 32 with a comma", driver.ErrName)
}

// convention returns how keys are made.
func convention(keys string) (func(name string) (key, error), error) {
	if keys == "" {
		keys = "interlock"
	}
	of := conventions[keys]
	if of == nil {
		return nil, fmt.Errorf("pglock: unknown keys %q: want one of %s", keys, strings.Join(slices.Sorted(maps.Keys(conventions)), ", "))
	}
	return of, nil
}

package zk

import "encoding/binary"

// record is a message in ZooKeeper's encoding, jute: numbers with the high byte first, and a length
// before everything else.
type record []byte

func (r record) int(v int32) record  { return binary.BigEndian.AppendUint32(r, uint32(v)) }
func (r record) long(v int64) record { return binary.BigEndian.AppendUint64(r, uint64(v)) }

func (r record) bool(v bool) record {
	if v {
		return append(r, 1)
	}
	return append(r, 0)
}

func (r record) bytes(b []byte) record  { return append(r.int(int32(len(b))), b...) }
func (r record) string(s string) record { return append(r.int(int32(len(s))), s...) }

// reader reads a record. After a field that is too short, or has an impossible length, it is bad,
// and all that it reads is zero.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if r.bad || n < 0 || n > len(r.b) {
		r.bad = true
		return nil
	}
	taken := r.b[:n:n]
	r.b = r.b[n:]
	return taken
}

func (r *reader) int() int32 {
	if b := r.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (r *reader) long() int64 {
	if b := r.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

func (r *reader) bool() bool {
	b := r.take(1)
	return b != nil && b[0] != 0
}

// bytes returns memory of the record itself, or nil for a length of -1.
func (r *reader) bytes() []byte {
	if n := r.int(); n != -1 {
		return r.take(int(n))
	}
	return nil
}

func (r *reader) string() string { return string(r.bytes()) }

func (r *reader) strings() []string {
	n := int(r.int())
	if n > len(r.b)/4 { // each has a length
		r.bad = true
	}
	if r.bad || n <= 0 {
		return nil
	}
	all := make([]string, n)
	for i := range all {
		all[i] = r.string()
	}
	return all
}

// Stat is what the servers keep about a node beside its data.
type Stat struct {
	Czxid, Mzxid                int64 // the changes that made it and that last changed its data
	Ctime, Mtime                int64 // the same in ms since 1970, by the leader's clock
	Version, Cversion, Aversion int32
	Owner                       int64 // the session of an ephemeral node, otherwise 0
	Length, Children            int32
	Pzxid                       int64
}

func (r *reader) stat() Stat {
	return Stat{
		Czxid: r.long(), Mzxid: r.long(), Ctime: r.long(), Mtime: r.long(), Version: r.int(), Cversion: r.int(), Aversion: r.int(),
		Owner: r.long(), Length: r.int(), Children: r.int(), Pzxid: r.long(),
	}
}

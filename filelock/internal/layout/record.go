package layout

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/line"
)

// A record is the line of one name as its file keeps it.
//
// The first page of the file is the head. It is written by one pwrite that stays within a page, so a writer who is
// killed leaves the old head or the new one. A line that fits stands in the head itself. A longer one stands in a body
// behind the head, at an offset where the body that the present head points to does not lie; the head that points to it
// is written afterwards. So there are always one whole line and the means to tell which: each head and each body
// carries a checksum, and the head the generation, which grows with every write.
//
//	head   0  8  magic
//	       8  2  major version of the layout; everything behind it may change with it
//	      10  2  flags: 1 = the line stands in a body, 2 = it is closed
//	      12  4  length of the head with what stands in it
//	      16  4  checksum (CRC-32C) of the head but for these four bytes
//	      20  4  checksum of the body, if there is one
//	      24  8  generation
//	      32 16  boot id: in another boot the claims are void
//	      48  8  highest token that anyone may have used
//	      56  4  length of the body
//	      60  4  offset of the body, in pages
//	      64     the line, or nothing
//
//	line      name, number of claims, claims, number of broken IDs, IDs, until when it is closed if it is; numbers and
//	          lengths as varints, times as 8 bytes
const (
	RecordMagic = "ilkrec\r\n"
	Major       = 1
	headSize    = 64
	PageSize    = 4096
	maxBody     = 64 << 20 // a body is never longer; a longer one is damage
	maxBroken   = 16       // broken IDs that are remembered
	flagBody    = 1
	flagClosed  = 2
)

// Record is the decoded state of one name's file.
type Record struct {
	line.Line
	Boot       Hash
	Generation uint64
	Ends       map[string]int64 // of broken claims by ID: until when they keep others out, on the boot-time clock
	Broken     []string         // IDs of claims that were broken and have left, so that their owners learn why
	Closed     int64            // nobody is granted anything before this, on the boot-time clock; 0: it is not closed

	body extent // where the line stands, if not in the head
}

// NotYetKnown is the end of a closed line whose second step has not been made: whoever finds it makes it.
const NotYetKnown = int64(math.MaxInt64)

// ClosedAt reports whether the line is closed at a time of the boot-time clock. It opens a line whose time has come.
func (r *Record) ClosedAt(now int64) bool {
	if r.Closed > now {
		return true
	}
	r.Closed = 0
	return false
}

// RememberBroken keeps the ID of a claim that was broken and has left.
func (r *Record) RememberBroken(id string) {
	if len(r.Broken) == maxBroken {
		r.Broken = r.Broken[1:]
	}
	r.Broken = append(slices.Clip(r.Broken), id)
}

// extent is a stretch of a record's file behind its head.
type extent struct {
	page uint32
	size uint32
}

// Castagnoli is the polynomial's table. It is made when it is first asked for, which takes 0.2 ms: no other package of a start takes as long to
// initialize. A driver asks for it in the background when it is opened, since the first session would wait for it.
func Castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// What can be wrong with a file of the store.
var (
	ErrDamaged = errors.New("damaged")
	ErrNewer   = errors.New("written by a newer version")
	ErrEmpty   = fmt.Errorf("%w (it is empty)", ErrDamaged)
	errCut     = damaged("somebody has cut it short")
)

// checksum returns the checksum of a head.
func checksum(head []byte) uint32 {
	return crc32.Update(crc32.Checksum(head[:16], Castagnoli()), Castagnoli(), head[20:])
}

// damaged says what is wrong with a record.
func damaged(what string) error { return fmt.Errorf("%w (%s)", ErrDamaged, what) }

// claim flags.
const (
	claimHeld = 1 << iota
	claimBroken
)

// appendLine encodes the line: its name and its claims.
func (r *Record) appendLine(b []byte) []byte {
	b = appendString(b, r.Name)
	b = binary.AppendUvarint(b, uint64(len(r.Claims)))
	for i := range r.Claims {
		c := &r.Claims[i]
		var flags byte
		if c.Held {
			flags |= claimHeld
		}
		if c.Broken {
			flags |= claimBroken
		}
		b = append(b, byte(c.Kind), flags)
		b = append(b, c.Session...) // 16 bytes: see sessionKey
		b = appendString(b, c.ID)
		b = binary.AppendUvarint(b, uint64(c.Weight))
		b = binary.AppendUvarint(b, uint64(c.Limit))
		b = binary.AppendUvarint(b, uint64(max(c.Passes, 0)))
		b = binary.LittleEndian.AppendUint64(b, uint64(c.Since.UnixNano()))
		b = binary.LittleEndian.AppendUint64(b, c.Fence)
		if c.Broken {
			b = binary.LittleEndian.AppendUint64(b, uint64(r.Ends[c.ID]))
		}
		b = appendString(b, c.Note)
	}
	b = binary.AppendUvarint(b, uint64(len(r.Broken)))
	for _, id := range r.Broken {
		b = appendString(b, id)
	}
	if r.Closed != 0 {
		b = binary.LittleEndian.AppendUint64(b, uint64(r.Closed))
	}
	return b
}

func appendString(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

// Encode returns the head and, for a long line, the body. Both are in buf.
func (r *Record) Encode(buf []byte) (head, body, full []byte) {
	buf = append(buf[:0], make([]byte, headSize)...)
	buf = r.appendLine(buf)
	head = buf
	if len(buf) > PageSize {
		at := len(buf)
		buf = append(buf, make([]byte, headSize)...)
		body, head = buf[headSize:at], buf[at:]
		r.body = place(r.body, len(body))
	} else {
		r.body = extent{}
	}
	flags := uint16(0)
	if body != nil {
		flags |= flagBody
		binary.LittleEndian.PutUint32(head[20:], crc32.Checksum(body, Castagnoli()))
	}
	if r.Closed != 0 {
		flags |= flagClosed
	}
	copy(head, RecordMagic)
	binary.LittleEndian.PutUint16(head[8:], Major)
	binary.LittleEndian.PutUint16(head[10:], flags)
	binary.LittleEndian.PutUint32(head[12:], uint32(len(head)))
	binary.LittleEndian.PutUint64(head[24:], r.Generation)
	copy(head[32:48], r.Boot[:])
	binary.LittleEndian.PutUint64(head[48:], r.Fence)
	binary.LittleEndian.PutUint32(head[56:], r.body.size)
	binary.LittleEndian.PutUint32(head[60:], r.body.page)
	binary.LittleEndian.PutUint32(head[16:], checksum(head))
	return head, body, buf
}

// place returns where a body of size bytes can stand beside the present one: before it if there is room, else behind it.
func place(present extent, size int) extent {
	pages := func(n int) uint32 { return uint32((n + PageSize - 1) / PageSize) }
	e := extent{page: 1, size: uint32(size)}
	if present.size > 0 && e.page+pages(size) > present.page {
		e.page = present.page + pages(int(present.size))
	}
	return e
}

// Stamp is what tells two heads apart without decoding them.
type Stamp struct {
	generation uint64
	checksum   uint32
}

// stampOf returns the stamp of a head that is complete.
func stampOf(head []byte) Stamp {
	if len(head) < headSize {
		return Stamp{}
	}
	return Stamp{binary.LittleEndian.Uint64(head[24:]), binary.LittleEndian.Uint32(head[16:])}
}

// decode reads the head in b, the first page of a file. A line that stands in a body is read through readBody.
func decode(b []byte, readBody func(extent) ([]byte, error)) (*Record, error) {
	r := &Record{}
	if len(b) == 0 {
		return nil, ErrEmpty
	}
	if len(b) < headSize || string(b[:8]) != RecordMagic {
		return nil, damaged("it does not begin as a record does")
	}
	if major := binary.LittleEndian.Uint16(b[8:]); major > Major {
		return nil, fmt.Errorf("%w of Interlock: its layout is %d, this program knows %d", ErrNewer, major, Major)
	} else if major != Major {
		return nil, damaged("its version is 0")
	}
	flags := binary.LittleEndian.Uint16(b[10:])
	size := binary.LittleEndian.Uint32(b[12:])
	if size < headSize || int(size) > min(len(b), PageSize) {
		return nil, damaged("it is cut off")
	}
	b = b[:size]
	if binary.LittleEndian.Uint32(b[16:]) != checksum(b) {
		return nil, damaged("its checksum is wrong")
	}
	r.Generation = binary.LittleEndian.Uint64(b[24:])
	copy(r.Boot[:], b[32:48])
	r.Fence = binary.LittleEndian.Uint64(b[48:])
	r.body = extent{size: binary.LittleEndian.Uint32(b[56:]), page: binary.LittleEndian.Uint32(b[60:])}
	text := b[headSize:]
	if flags&flagBody != 0 {
		if r.body.size > maxBody || r.body.page == 0 {
			return nil, damaged("its body is nowhere")
		}
		body, err := readBody(r.body)
		if err != nil {
			return nil, err
		}
		if len(body) != int(r.body.size) || crc32.Checksum(body, Castagnoli()) != binary.LittleEndian.Uint32(b[20:]) {
			return nil, damaged("the checksum of its body is wrong")
		}
		text = body
	} else if r.body != (extent{}) {
		return nil, damaged("it has a body too many")
	}
	return r, r.parse(text, flags&flagClosed != 0)
}

// parse reads what appendLine wrote.
func (r *Record) parse(b []byte, closed bool) error {
	p := parser{rest: b}
	r.Name = p.string()
	const leastClaim = 38 // bytes
	n := p.uvarint(uint64(len(b) / leastClaim))
	if n > 0 {
		r.Claims = make([]line.Claim, 0, n)
	}
	for range n {
		var c line.Claim
		head := p.bytes(2 + len(Hash{}))
		if p.bad {
			break
		}
		c.Kind = driver.Kind(head[0])
		c.Held, c.Broken = head[1]&claimHeld != 0, head[1]&claimBroken != 0
		c.Session = string(head[2:])
		c.ID = p.string()
		c.Weight = int(p.uvarint(driver.All))
		c.Limit = int(p.uvarint(driver.All))
		c.Passes = int(p.uvarint(math.MaxInt64))
		c.Since = time.Unix(0, int64(p.uint64()))
		c.Fence = p.uint64()
		if c.Broken {
			if r.Ends == nil {
				r.Ends = map[string]int64{}
			}
			r.Ends[c.ID] = int64(p.uint64())
		}
		c.Note = p.string()
		if c.Kind < driver.Mutex || c.Kind > driver.Permit || c.Weight < 1 || c.Weight > c.Limit {
			p.bad = true
		}
		r.Claims = append(r.Claims, c)
	}
	for range p.uvarint(maxBroken) {
		r.Broken = append(r.Broken, p.string())
	}
	if closed {
		r.Closed = int64(p.uint64())
	}
	if p.bad || len(p.rest) > 0 {
		return damaged("its line cannot be read")
	}
	return nil
}

// parser reads fields one after the other; bad is set by the first that is not there.
type parser struct {
	rest []byte
	bad  bool
}

func (p *parser) bytes(n int) []byte {
	if p.bad || n > len(p.rest) {
		p.bad = true
		return nil
	}
	b := p.rest[:n]
	p.rest = p.rest[n:]
	return b
}

func (p *parser) uvarint(largest uint64) uint64 {
	v, n := binary.Uvarint(p.rest)
	if p.bad || n <= 0 || v > largest {
		p.bad = true
		return 0
	}
	p.rest = p.rest[n:]
	return v
}

func (p *parser) uint64() uint64 {
	if b := p.bytes(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (p *parser) string() string { return string(p.bytes(int(p.uvarint(uint64(len(p.rest)))))) }

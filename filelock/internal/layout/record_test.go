package layout

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/line"
)

// image is a file in memory.
type image []byte

func (f *image) writeAt(b []byte, off int64) {
	if need := int(off) + len(b); len(*f) < need {
		*f = append(*f, make([]byte, need-len(*f))...)
	}
	copy((*f)[off:], b)
}

func (f *image) write(r *Record) {
	head, body, _ := r.Encode(nil)
	if body != nil {
		f.writeAt(body, int64(r.body.page)*PageSize)
	}
	f.writeAt(head, 0)
}

func (f *image) read() (*Record, error) {
	return decode((*f)[:min(len(*f), PageSize)], func(e extent) ([]byte, error) {
		from := min(int(e.page)*PageSize, len(*f))
		return (*f)[from:min(from+int(e.size), len(*f))], nil
	})
}

// sample returns a record of n claims.
func sample(n int) *Record {
	r := &Record{Line: line.Line{Name: "coupons/42", Fence: 99}, Boot: HashOf("boot"), Generation: 7}
	for i := range n {
		h := HashOf(fmt.Sprint("session", i))
		c := line.Claim{
			Session: string(h[:]), ID: driver.NewID(), Kind: driver.Write, Weight: driver.All, Limit: driver.All,
			Note: "note", Passes: i, Held: i == 0, Since: time.Unix(1_700_000_000, int64(i)), Fence: uint64(i),
		}
		if i == 1 {
			c.Broken = true
			r.Ends = map[string]int64{c.ID: 12345}
		}
		r.Claims = append(r.Claims, c)
	}
	r.Broken = []string{"gone"}
	return r
}

func same2(t *testing.T, got, want *Record) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("read back\n%+v\nwant\n%+v", got, want)
	}
}

func TestRecord_ComesBackAsItWas(t *testing.T) {
	for _, n := range []int{0, 1, 2, 30, 60, 1000} {
		r := sample(n)
		var f image
		f.write(r)
		got, err := f.read()
		if err != nil {
			t.Fatalf("%d claims: %v", n, err)
		}
		same2(t, got, r)
		if long := r.body.size > 0; long != (n >= 60) {
			t.Errorf("%d claims: in a body: %v", n, long)
		}
	}
}

// The writer of a long line may be killed between the body and the head, and at any place within the body: what is
// read is the line before, whole.
func TestRecord_LongLineIsWrittenBesideThePresentOne(t *testing.T) {
	var f image
	before := sample(300)
	f.write(before)
	for step := range 50 {
		next := sample(rand.IntN(400))
		next.body, next.Generation = before.body, before.Generation+1
		head, body, _ := next.Encode(nil)
		for _, cut := range []int{0, 1, len(body) / 2, len(body)} {
			if body != nil {
				f.writeAt(body[:cut], int64(next.body.page)*PageSize)
			}
			got, err := f.read()
			if err != nil {
				t.Fatalf("step %d: killed after %d of %d bytes of the body: %v", step, cut, len(body), err)
			}
			same2(t, got, before)
		}
		f.writeAt(head, 0)
		got, err := f.read()
		if err != nil {
			t.Fatal(err)
		}
		same2(t, got, next)
		before = next
	}
	if limit := 8 * 400 * 100; len(f) > limit {
		t.Errorf("the file has grown to %d bytes", len(f))
	}
}

func TestRecord_EveryFlippedByteIsDetected(t *testing.T) {
	for _, n := range []int{0, 3, 100} {
		var f image
		r := sample(n)
		f.write(r)
		head, _, _ := r.Encode(nil)
		for at := range f {
			inHead := at < len(head)
			inBody := r.body.size > 0 && at >= int(r.body.page)*PageSize
			if !inHead && !inBody {
				continue // nothing is stored there
			}
			f[at] ^= 0x10
			if _, err := f.read(); !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNewer) {
				t.Fatalf("%d claims: byte %d of %d flipped: %v, want errDamaged", n, at, len(f), err)
			}
			f[at] ^= 0x10
		}
	}
}

func TestRecord_EveryTruncationIsDetected(t *testing.T) {
	for _, n := range []int{0, 3, 100} {
		var f image
		f.write(sample(n))
		for size := 1; size < len(f); size++ {
			cut := f[:size]
			if _, err := cut.read(); !errors.Is(err, ErrDamaged) {
				t.Fatalf("%d claims: cut to %d of %d bytes: %v", n, size, len(f), err)
			}
		}
	}
}

func TestRecord_NewerVersionIsNamed(t *testing.T) {
	var f image
	f.write(sample(1))
	f[8] = Major + 1
	if _, err := f.read(); !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), "layout is 2") {
		t.Fatalf("version 2: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, n := range []int{0, 1, 5, 100} {
		head, body, _ := sample(n).Encode(nil)
		f.Add(bytes.Clone(head), bytes.Clone(body))
	}
	f.Add([]byte(nil), []byte(nil))
	f.Fuzz(func(t *testing.T, head, body []byte) {
		r, err := decode(head, func(extent) ([]byte, error) { return body, nil })
		if err != nil {
			if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNewer) {
				t.Fatalf("an error of no kind: %v", err)
			}
			return
		}
		var again image
		again.write(r)
		got, err := again.read()
		if err != nil {
			t.Fatalf("what was read cannot be read again: %v", err)
		}
		if !reflect.DeepEqual(got.Line, r.Line) {
			t.Fatalf("%+v became %+v", r.Line, got.Line)
		}
	})
}

// FuzzParse goes behind the checksums, which a fuzzer cannot guess.
func FuzzParse(f *testing.F) {
	for _, n := range []int{0, 1, 5} {
		f.Add(sample(n).appendLine(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := &Record{}
		if err := r.parse(b, false); err != nil {
			return
		}
		again := &Record{}
		if err := again.parse(r.appendLine(nil), false); err != nil {
			t.Fatalf("what was read cannot be read again: %v", err)
		}
		if !reflect.DeepEqual(again.Line, r.Line) {
			t.Fatalf("%+v became %+v", r.Line, again.Line)
		}
	})
}

func TestName_FilesDifferWhereNamesDo(t *testing.T) {
	groups := [][]string{
		{"Job", "job", "JOB", "jOb"},
		{"caf\u00e9", "cafe\u0301"}, // composed and decomposed
		{"a/b", "a-b", "a:b", "a b", "a\x00b", "a.b"},
		{"x", "x ", " x", "x."},
		{"con", "nul", "..", ".", "../locks/x"},
		{strings.Repeat("n", 1024), strings.Repeat("n", 1023)},
	}
	seen := map[string]string{}
	for _, g := range groups {
		for _, name := range g {
			file := RecordName(name, HashOf(name))
			for _, r := range file {
				if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789-_", r) {
					t.Errorf("%q: file %q has the character %q", name, file, r)
				}
			}
			if len(file) > 255 {
				t.Errorf("%q: file name of %d bytes", name, len(file))
			}
			if other, ok := seen[file]; ok {
				t.Errorf("%q and %q share the file %q", name, other, file)
			}
			seen[file] = name
			if h, ok := HashIn(file); !ok || h != HashOf(name) {
				t.Errorf("%q: the hash in %q is not found", name, file)
			}
		}
	}
}

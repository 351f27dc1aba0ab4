//go:build linux || darwin

package guard

import (
	"encoding/binary"
	"errors"
)

// wire writes the fields of a message one after the other, or reads them: a number as a varint, a
// text behind its length, a list behind its count. Both ends are the same program, so nothing says
// which field comes. JSON would cost a start half as much as a Go program that does nothing: both
// ends have just begun, and package json first looks at the type.
type wire struct {
	data    []byte
	reading bool
	short   bool // there is less to read than was announced
}

var errMessage = errors.New("guard: a message that cannot be read")

// encode appends m to data.
func (m *message) encode(data []byte) []byte {
	w := &wire{data: data}
	m.fields(w)
	return w.data
}

// decode reads m from all of data, of which it keeps a part.
func (m *message) decode(data []byte) error {
	w := &wire{data: data, reading: true}
	m.fields(w)
	if w.short || len(w.data) > 0 {
		return errMessage
	}
	return nil
}

func number[N ~int | ~int64](w *wire, n *N) {
	if !w.reading {
		w.data = binary.AppendVarint(w.data, int64(*n))
		return
	}
	v, size := binary.Varint(w.data)
	if size <= 0 {
		w.short = true
		return
	}
	*n, w.data = N(v), w.data[size:]
}

func flag(w *wire, b *bool) {
	n := 0
	if *b {
		n = 1
	}
	number(w, &n)
	*b = n != 0
}

// count is the length of what follows, of which each part takes a byte at least.
func count(w *wire, n int) int {
	number(w, &n)
	if n < 0 || w.reading && n > len(w.data) {
		w.short = true
		return 0
	}
	return n
}

func text[T ~string | ~[]byte](w *wire, t *T) {
	n := count(w, len(*t))
	if !w.reading {
		w.data = append(w.data, *t...)
		return
	}
	*t, w.data = T(w.data[:n:n]), w.data[n:]
}

func list[T any](w *wire, ts *[]T, each func(*wire, *T)) {
	n := count(w, len(*ts))
	if w.reading {
		*ts = make([]T, n)
	}
	for i := range *ts {
		each(w, &(*ts)[i])
	}
}

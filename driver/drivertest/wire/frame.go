package wire

import (
	"bytes"
	"strconv"
)

// framer follows one stream of RESP and finds where its frames end. It reads along from the first
// byte whether or not anything is filtered, so that a filter can begin at any time.
type framer struct {
	alien bool   // the stream is not RESP: nothing more is found in it
	line  []byte // the part of the current header line that is there
	skip  int    // bytes of a string's content, and its line end, still to come
	begun bool   // a frame has begun and not ended
	todo  int    // values of which it lacks the header
	held  []byte // the part of the current frame that a filter keeps back
}

// longest is the longest header line, in bytes: simple strings and errors are the long ones.
const longest = 64 << 10

// filter takes what has arrived and returns what may pass, in memory of its own.
func (f *framer) filter(b []byte, keep func([]byte) bool, filtering bool) []byte {
	if f.alien {
		return bytes.Clone(b)
	}
	var out []byte
	if !filtering {
		out, f.held = f.held, nil
	}
	for len(b) > 0 {
		// A frame of which some has passed must pass whole.
		passing := !filtering || f.begun && f.held == nil
		n, end := f.next(b)
		switch {
		case f.alien:
			out = append(append(out, f.held...), b...)
			f.held = nil
			return out
		case passing:
			out = append(out, b[:n]...)
		default:
			f.held = append(f.held, b[:n]...)
			if end {
				if keep(f.held) {
					out = append(out, f.held...)
				}
				f.held = nil
			}
		}
		b = b[n:]
	}
	return out
}

// next reads to the end of the current frame or of b, and returns how much that was.
func (f *framer) next(b []byte) (n int, end bool) {
	if !f.begun {
		f.begun, f.todo = true, 1
	}
	for n < len(b) {
		if f.skip > 0 {
			step := min(f.skip, len(b)-n)
			n += step
			f.skip -= step
		} else {
			eol := bytes.IndexByte(b[n:], '\n')
			if eol < 0 {
				f.line = append(f.line, b[n:]...)
				f.alien = len(f.line) > longest
				return len(b), false
			}
			f.line = append(f.line, b[n:n+eol]...)
			n += eol + 1
			f.header(bytes.TrimSuffix(f.line, []byte{'\r'}))
			f.line = f.line[:0]
			if f.alien {
				return n, false
			}
		}
		if f.skip == 0 && f.todo == 0 {
			f.begun = false
			return n, true
		}
	}
	return n, false
}

// header counts one value off and adds what its header line announces. What begins with no sign of
// RESP is a command in one line, as people type them.
func (f *framer) header(line []byte) {
	f.todo--
	if len(line) == 0 {
		return
	}
	perItem := 0
	switch line[0] {
	case '$', '=', '!': // strings
	case '*', '~', '>': // arrays, sets, pushes
		perItem = 1
	case '%', '|': // maps, and attributes, after which the value itself follows
		perItem = 2
	default:
		return
	}
	size, err := strconv.Atoi(string(line[1:]))
	switch {
	case err != nil:
		f.alien = true // also the streamed strings and arrays of RESP3, which no server sends
	case size < 0: // no value
	case perItem == 0:
		f.skip = size + len("\r\n")
	default:
		f.todo += size * perItem
	}
	if line[0] == '|' {
		f.todo++
	}
}

package memcache

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/interlock-go/interlock/driver"
)

// Status is the word that an answer begins with.
type Status string

// What is answered.
const (
	Done      Status = "HD" // stored or deleted
	Value     Status = "VA" // here it is
	None      Status = "EN" // there is none
	NotStored Status = "NS" // there is one already
	Changed   Status = "EX" // the version is another one
	NotFound  Status = "NF" // there is none whose version could be compared
	Alive     Status = "MN" // to Nothing
)

// Reply is the answer to one request.
type Reply struct {
	Status Status
	Value  []byte
	CAS    uint64 // the item's version: of those that one server gives the later is larger, until it is restarted
	Left   int    // seconds that are left of it, -1 for one that stays
	Start  int64  // when the server was started, in seconds since 1970 by its own clock

	// Err is what the server said instead: that it could not do this. The other requests are not concerned.
	Err error
}

// maxValue bounds what is read: no lock is that long, nor is an item, unless the server was told so.
const maxValue = 16 << 20

// readReply reads one answer. After an error nobody knows where the next one begins.
func readReply(r *bufio.Reader) (Reply, error) {
	line, err := readLine(r)
	if err != nil {
		return Reply{}, err
	}
	word, rest, _ := bytes.Cut(line, []byte(" "))
	reply := Reply{Status: Status(word)}
	size := -1
	switch reply.Status {
	case Done, None, NotStored, Changed, NotFound, Alive:
	case Value:
		var first []byte
		first, rest, _ = bytes.Cut(rest, []byte(" "))
		if size, err = strconv.Atoi(string(first)); err != nil || size < 0 || size > maxValue {
			return Reply{}, unexpected(line)
		}
	case "SERVER_ERROR":
		full := bytes.Contains(rest, []byte("memory"))
		if full {
			return Reply{Err: fmt.Errorf("%w: %w: the server says %q: give it more memory (-m)", driver.ErrUnable, driver.ErrNotSent, rest)}, nil
		}
		return Reply{Err: fmt.Errorf("the server says %q", rest)}, nil
	default:
		return Reply{}, unexpected(line)
	}
	for flag := range bytes.FieldsSeq(rest) {
		switch flag[0] {
		case 'c':
			reply.CAS, err = strconv.ParseUint(string(flag[1:]), 10, 64)
		case 't':
			reply.Left, err = strconv.Atoi(string(flag[1:]))
		}
		if err != nil {
			return Reply{}, unexpected(line)
		}
	}
	if size < 0 {
		return reply, nil
	}
	reply.Value = make([]byte, size+2)
	if _, err := io.ReadFull(r, reply.Value); err != nil {
		return Reply{}, err
	}
	if !bytes.HasSuffix(reply.Value, []byte("\r\n")) {
		return Reply{}, fmt.Errorf("a value of the server does not end where it said: want a memcached")
	}
	reply.Value = reply.Value[:size]
	return reply, nil
}

// readLine reads up to the end of a line, which it leaves out.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) || err == nil && !bytes.HasSuffix(line, []byte("\r\n")) {
		return nil, unexpected(line)
	}
	if err != nil {
		return nil, err
	}
	return line[:len(line)-2], nil
}

// unexpected is an answer that means nothing here.
func unexpected(line []byte) error {
	return fmt.Errorf("the server answers %q: want a memcached 1.6 or newer, which knows meta commands", line[:min(len(line), 80)])
}

package memcache

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/driver"
)

// Status is the word that an answer begins with.
type Status string

// The answers.
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
	Version
	Left int // seconds until it expires, -1 for never

	err error // why the server could not do this; other requests go on
}

// maxValue bounds what is read: no lock is that long, nor is an item as a server is usually
// configured.
const maxValue = 16 << 20

// readReply reads one answer. After an error where the next one begins is unknown.
func readReply(r *bufio.Reader) (Reply, error) {
	line, err := readLine(r)
	if err != nil {
		return Reply{}, err
	}
	word, rest, _ := strings.Cut(line, " ")
	reply, size := Reply{Status: Status(word)}, ""
	switch reply.Status {
	case Done, None, NotStored, Changed, NotFound, Alive:
	case Value:
		size, rest, _ = strings.Cut(rest, " ")
	case "SERVER_ERROR":
		reply.err = fmt.Errorf("the server says %q", rest)
		if strings.Contains(rest, "memory") {
			reply.err = fmt.Errorf("%w: %w: %w: give it more memory (-m)", driver.ErrUnable, driver.ErrNotSent, reply.err)
		}
		return reply, nil
	default:
		return Reply{}, unexpected(line)
	}
	for flag := range strings.FieldsSeq(rest) {
		switch flag[0] {
		case 'c':
			reply.CAS, err = strconv.ParseUint(flag[1:], 10, 64)
		case 't':
			reply.Left, err = strconv.Atoi(flag[1:])
		}
		if err != nil {
			return Reply{}, unexpected(line)
		}
	}
	if reply.Status != Value {
		return reply, nil
	}
	n, err := strconv.ParseUint(size, 10, 64)
	if err != nil || n > maxValue {
		return Reply{}, unexpected(line)
	}
	reply.Value = make([]byte, n+2)
	_, err = io.ReadFull(r, reply.Value)
	if text, ends := strings.CutSuffix(string(reply.Value), "\r\n"); err == nil && !ends {
		err = fmt.Errorf("a value does not end where it said: %.80q", text)
	}
	reply.Value = reply.Value[:n]
	return reply, err
}

// readLine reads a line, and returns it without its end.
func readLine(r *bufio.Reader) (string, error) {
	b, err := r.ReadSlice('\n')
	line, ends := strings.CutSuffix(string(b), "\r\n")
	if errors.Is(err, bufio.ErrBufferFull) || err == nil && !ends {
		return "", unexpected(line)
	}
	return line, err
}

// unexpected returns the error for an answer of no meaning.
func unexpected(line string) error {
	return fmt.Errorf("the server answers %.80q: want a memcached 1.6 or newer, which knows meta commands", line)
}

package servertest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// Error is an error that the server answered, such as "WRONGTYPE Operation against a key …".
type Error string

func (e Error) Error() string { return string(e) }

// patience bounds one Do.
const patience = 5 * time.Second

// Do sends one command over a connection of its own and returns the reply as text: strings and numbers as they are, no
// value as "(nil)", the values of an array each on its line. An error of the server is an Error. The server has to answer
// within five seconds.
func (s *Server) Do(args ...string) (string, error) {
	return do(s.Addr(), args...)
}

func do(addr string, args ...string) (string, error) {
	deadline := time.Now().Add(patience)
	c, err := (&net.Dialer{Deadline: deadline}).Dial("tcp", addr)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if err := c.SetDeadline(deadline); err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	if _, err := io.WriteString(c, b.String()); err != nil {
		return "", err
	}
	return reply(bufio.NewReader(c))
}

// reply reads one RESP2 value. Errors inside an array are text like the rest of it.
func reply(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimSuffix(line, "\r\n")
	if line == "" {
		return "", errors.New("servertest: an empty line is no reply")
	}
	kind, rest := line[0], line[1:]
	switch kind {
	case '+', ':':
		return rest, nil
	case '-':
		return "", Error(rest)
	}
	n, err := strconv.Atoi(rest)
	switch {
	case err != nil:
		return "", fmt.Errorf("servertest: %q is no reply", line)
	case n < 0:
		return "(nil)", nil
	case kind == '$':
		b := make([]byte, n+2)
		if _, err := io.ReadFull(r, b); err != nil {
			return "", err
		}
		return string(b[:n]), nil
	case kind == '*':
		values := make([]string, n)
		for i := range values {
			var refusal Error
			values[i], err = reply(r)
			if errors.As(err, &refusal) {
				values[i] = string(refusal)
			} else if err != nil {
				return "", err
			}
		}
		return strings.Join(values, "\n"), nil
	}
	return "", fmt.Errorf("servertest: %q is no reply", line)
}

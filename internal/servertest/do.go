package servertest

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// Error is an error that the server answered, such as "WRONGTYPE Operation against a key …".
type Error string

func (e Error) Error() string { return string(e) }

// patience bounds one Do.
const patience = 20 * time.Second

// Do sends one command over a connection of its own and returns the reply as text: strings and
// numbers as they are, no value as "(nil)", the values of an array each on its line. An error of
// the server is an Error. The server has to answer within twenty seconds.
func (s *Server) Do(args ...string) (string, error) {
	v, err := s.ask(args...)
	return v.String(), err
}

// ask is Do with the shape of the reply.
func (s *Server) ask(args ...string) (value, error) {
	deadline := time.Now().Add(patience)
	c, err := s.dial(deadline)
	if err != nil {
		return value{}, err
	}
	defer c.Close()
	if err := c.SetDeadline(deadline); err != nil {
		return value{}, err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	if _, err := io.WriteString(c, b.String()); err != nil {
		return value{}, err
	}
	return readValue(bufio.NewReader(c))
}

// MustDo is Do for a test, which fails at an error.
func (s *Server) MustDo(t TB, args ...string) string {
	t.Helper()
	reply, err := s.Do(args...)
	if err != nil {
		t.Fatal(fmt.Errorf("%q: %w", args, err))
	}
	return reply
}

// shows returns an error unless the command's reply contains the text.
func (s *Server) shows(text string, command ...string) error {
	got, err := s.Do(command...)
	if err == nil && !strings.Contains(got, text) {
		err = fmt.Errorf("the server at %s does not answer %q to %q:\n%s", s.Addr(), text, command, got)
	}
	return err
}

// feeds returns an error until the replica gets whatever is written to the server. When the replica
// has its copy and both say that it is online, that is not yet so: the stream begins with its first
// acknowledgement, up to a second later, and what is written before goes down with the server.
func (s *Server) feeds(replica *Server) error {
	got, err := s.Do("INFO", "replication")
	if err != nil {
		return err
	}
	_, offset, _ := strings.Cut(got, fmt.Sprintf(",port=%d,state=online,offset=", replica.port))
	if offset == "" || strings.HasPrefix(offset, "0,") {
		return fmt.Errorf("the server at %s does not feed its replica at %s:\n%s", s.Addr(), replica.Addr(), got)
	}
	return replica.shows("master_link_status:up", "INFO", "replication")
}

// dial connects to a Redis, by TLS where it speaks that.
func (s *Server) dial(deadline time.Time) (net.Conn, error) {
	d := &net.Dialer{Deadline: deadline}
	if !s.o.TLS {
		return d.Dial("tcp", s.Addr())
	}
	text, err := os.ReadFile(s.CertFile())
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	return tls.DialWithDialer(d, "tcp", s.Addr(), &tls.Config{RootCAs: roots})
}

// value is one RESP2 value: a text, or a list where the text is empty.
type value struct {
	text string
	list []value
}

func (v value) String() string {
	if v.list == nil {
		return v.text
	}
	return strings.Join(v.texts(), "\n")
}

func (v value) texts() []string {
	texts := make([]string, len(v.list))
	for i, item := range v.list {
		texts[i] = item.String()
	}
	return texts
}

// pairs reads a list of names and values.
func (v value) pairs() map[string]string {
	m := make(map[string]string, len(v.list)/2)
	for i := 0; i+1 < len(v.list); i += 2 {
		m[v.list[i].text] = v.list[i+1].String()
	}
	return m
}

// readValue reads one value. An error inside a list is a text like the rest of it.
func readValue(r *bufio.Reader) (value, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return value{}, err
	}
	line = strings.TrimSuffix(line, "\r\n")
	if line == "" {
		return value{}, errors.New("servertest: an empty line is no reply")
	}
	kind, rest := line[0], line[1:]
	switch kind {
	case '+', ':':
		return value{text: rest}, nil
	case '-':
		return value{}, Error(rest)
	}
	n, err := strconv.Atoi(rest)
	switch {
	case err != nil:
		return value{}, fmt.Errorf("servertest: %q is no reply", line)
	case n < 0:
		return value{text: "(nil)"}, nil
	case kind == '$':
		b := make([]byte, n+2)
		if _, err := io.ReadFull(r, b); err != nil {
			return value{}, err
		}
		return value{text: string(b[:n])}, nil
	case kind == '*':
		list := make([]value, n)
		for i := range list {
			list[i], err = readValue(r)
			if refusal := Error(""); errors.As(err, &refusal) {
				list[i].text = string(refusal)
			} else if err != nil {
				return value{}, err
			}
		}
		return value{list: list}, nil
	}
	return value{}, fmt.Errorf("servertest: %q is no reply", line)
}

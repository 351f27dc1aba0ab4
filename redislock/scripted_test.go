package redislock_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver/drivertest/wire"
)

// scripted is a server that answers what a test says, and else as a Redis with nothing in it: a
// take is granted, a release succeeds, a renewal too.
type scripted struct {
	net.Listener
	wg sync.WaitGroup

	mu      sync.Mutex
	answer  func(words []string) string // in RESP; "" leaves it to the server
	asked   [][]string
	clients []net.Conn
}

func newScripted(t *testing.T) *scripted {
	t.Helper()
	l, err := wire.Loopback()
	if err != nil {
		t.Fatal(err)
	}
	s := &scripted{Listener: l}
	s.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.clients = append(s.clients, c)
			s.mu.Unlock()
			s.wg.Go(func() { s.serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		s.mu.Lock()
		for _, c := range s.clients {
			_ = c.Close()
		}
		s.mu.Unlock()
		s.wg.Wait()
	})
	return s
}

// says has the server answer differently from now on; nil ends it.
func (s *scripted) says(answer func(words []string) string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

// refuses has the server answer every script with an error.
func (s *scripted) refuses(text string) {
	s.says(func(words []string) string {
		if words[0] == "EVALSHA" || words[0] == "EVAL" || words[0] == "FCALL" {
			return "-" + text + "\r\n"
		}
		return ""
	})
}

// count is how often such a request has come.
func (s *scripted) count(is func(words []string) bool) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, words := range s.asked {
		if is(words) {
			n++
		}
	}
	return n
}

// call tells the scripts apart by what they are given, and for how many claims it is.
func call(words []string) (script string, claims int) {
	if !strings.HasPrefix(words[0], "EVAL") {
		return "", 0
	}
	n, _ := strconv.Atoi(words[2])
	keys, args := words[3:3+n], words[3+n:]
	switch {
	case n == 4 && strings.Contains(keys[2], ":line:") && args[0] != "":
		return "leave", 1
	case n == 4 && strings.Contains(keys[2], ":line:"):
		return "enter", 1
	case n%2 == 0 && strings.Contains(keys[1], ":fence:"):
		return "take", n / 2
	case len(args) == n && strings.HasPrefix(args[0], "il1:"):
		return "free", n
	}
	return "hold", n
}

// leaves reports whether a request takes a claim out.
func leaves(words []string) bool {
	script, _ := call(words)
	return script == "leave" || script == "free"
}

func (s *scripted) serve(c net.Conn) {
	defer c.Close()
	r := bufio.NewReader(c)
	for {
		words, err := readRequest(r)
		if err != nil {
			return
		}
		s.mu.Lock()
		s.asked = append(s.asked, slices.Clone(words))
		answer := s.answer
		s.mu.Unlock()
		text := ""
		if answer != nil {
			text = answer(words)
		}
		if text == "" {
			text = usual(words)
		}
		if _, err := io.WriteString(c, text); err != nil {
			return
		}
	}
}

// usual is the answer of an empty server.
func usual(words []string) string {
	bulk := func(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }
	now := time.Now()
	switch strings.ToUpper(words[0]) {
	case "HELLO":
		return "%3\r\n+server\r\n+redis\r\n+version\r\n+7.0.15\r\n+proto\r\n:3\r\n"
	case "INFO":
		return bulk("role:master\r\naof_enabled:1\r\nmaxmemory_policy:noeviction\r\n")
	case "CONFIG":
		return "%1\r\n+appendfsync\r\n+always\r\n"
	case "TIME":
		return "*2\r\n" + bulk(strconv.FormatInt(now.Unix(), 10)) + bulk("0")
	case "PING":
		return "+PONG\r\n"
	case "SUBSCRIBE":
		return ">3\r\n+subscribe\r\n" + bulk(words[1]) + ":1\r\n"
	case "EVALSHA", "EVAL":
		counter := fmt.Sprintf(":%d\r\n", now.UnixMicro()/64*64)
		switch script, n := call(words); {
		case script == "leave":
			return ":1\r\n"
		case script == "enter": // held
			return "*7\r\n:2\r\n:0\r\n" + counter + ":-1\r\n:0\r\n:0\r\n+\r\n"
		case script == "take" && n == 1:
			return counter
		case script == "take":
			return fmt.Sprintf("*%d\r\n", n) + strings.Repeat(counter, n)
		case script == "free":
			return fmt.Sprintf("*%d\r\n", n) + strings.Repeat(":1\r\n", n)
		}
		return "*0\r\n"
	}
	return "+OK\r\n"
}

func readRequest(r *bufio.Reader) ([]string, error) {
	n, err := readLength(r, '*')
	if err != nil {
		return nil, err
	}
	words := make([]string, n)
	for i := range words {
		size, err := readLength(r, '$')
		if err != nil {
			return nil, err
		}
		b := make([]byte, size+2)
		if _, err := io.ReadFull(r, b); err != nil {
			return nil, err
		}
		words[i] = string(b[:size])
	}
	return words, nil
}

func readLength(r *bufio.Reader, sign byte) (int, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return 0, err
	}
	if line[0] != sign {
		return 0, errors.New("not a request")
	}
	return strconv.Atoi(strings.TrimSpace(line[1:]))
}

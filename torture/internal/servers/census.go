//go:build linux || darwin

package servers

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/internal/servertest"
)

// Census is what servers have when nobody uses them.
type Census struct {
	Connections int // of clients
	Entries     int // keys, rows, nodes: whatever they keep
}

// established returns how many connections there are at the servers' ends of these addresses, also
// such of which the client has hung up.
func established(addrs []string) (n int, err error) {
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) { // another system, or one without the sixth version
			continue
		}
		if err != nil {
			return 0, err
		}
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			if len(f) < 4 || f[3] != "01" && f[3] != "08" {
				continue
			}
			if slices.ContainsFunc(addrs, func(addr string) bool { return strings.HasSuffix(f[1], hexPort(addr)) }) {
				n++
			}
		}
	}
	return n, nil
}

// hexPort is the port of an address as the kernel shows it.
func hexPort(addr string) string {
	_, text, _ := net.SplitHostPort(addr)
	port, _ := strconv.Atoi(text)
	return fmt.Sprintf(":%04X", port)
}

// find returns the number in a text that a pattern finds.
func find(in *regexp.Regexp, text []byte, err error) (int, error) {
	m := in.FindSubmatch(text)
	if err != nil || m == nil {
		return 0, fmt.Errorf("torture: no count in %q: %w", text[:min(len(text), 100)], err)
	}
	f, err := strconv.ParseFloat(string(m[1]), 64)
	return int(f), err
}

// exchange sends a server a line and returns its answer: up to a line, or all of it where that is
// empty.
func exchange(s *servertest.Server, line, end string) (string, error) {
	conn, err := net.DialTimeout("tcp", s.Addr(), 5*time.Second)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, line); err != nil {
		return "", err
	}
	if end == "" {
		text, err := io.ReadAll(conn)
		return string(text), err
	}
	var b strings.Builder
	for in := bufio.NewScanner(conn); in.Scan(); {
		b.WriteString(in.Text() + "\n")
		if in.Text() == end {
			return b.String(), nil
		}
	}
	return "", fmt.Errorf("torture: the server at %s has not answered %q to the end", s.Addr(), line)
}

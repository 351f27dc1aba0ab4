package servertest_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/servertest"
)

// sql sends one query as the superuser and returns the fields of its rows, or the server's error.
func sql(s *servertest.Server, query string) (string, error) {
	c, err := net.DialTimeout("tcp", s.Addr(), 10*time.Second)
	if err != nil {
		return "", err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	body := append(binary.BigEndian.AppendUint32(nil, 196608), "user\x00postgres\x00\x00"...)
	first := binary.BigEndian.AppendUint32(nil, uint32(len(body)+4))
	ask := binary.BigEndian.AppendUint32([]byte{'Q'}, uint32(len(query)+5))
	if _, err := c.Write(append(append(first, body...), append(append(ask, query...), 0)...)); err != nil {
		return "", err
	}
	var fields []string
	for ready := 0; ; {
		var head [5]byte
		if _, err := io.ReadFull(c, head[:]); err != nil {
			return "", err
		}
		b := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
		if _, err := io.ReadFull(c, b); err != nil {
			return "", err
		}
		switch head[0] {
		case 'E':
			return "", errors.New(string(bytes.ReplaceAll(b, []byte{0}, []byte(" "))))
		case 'D':
			for b = b[2:]; len(b) >= 4; {
				n := int(binary.BigEndian.Uint32(b))
				fields, b = append(fields, string(b[4:4+n])), b[4+n:]
			}
		case 'Z':
			if ready++; ready == 2 { // the first is that of the greeting
				return strings.Join(fields, " "), nil
			}
		}
	}
}

func mustSQL(t *testing.T, s *servertest.Server, query string) string {
	t.Helper()
	got, err := sql(s, query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return got
}

// sharedMemory is how the system names the memory of a PostgreSQL: the key and the number, which is
// how its list begins a line.
func sharedMemory(t *testing.T, s *servertest.Server) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.Dir(), "postmaster.pid"))
	if errors.Is(err, os.ErrNotExist) {
		return ""
	}
	lines := strings.Split(string(text), "\n")
	if err != nil || len(lines) < 7 {
		t.Fatalf("postmaster.pid: %v\n%s", err, text)
	}
	f := strings.Fields(lines[6])
	name := fmt.Sprintf("%10s %10s ", f[0], f[1])
	if all, err := os.ReadFile("/proc/sysvipc/shm"); err == nil && !strings.Contains(string(all), name) {
		t.Fatalf("no shared memory %s in\n%s", name, all)
	}
	return name
}

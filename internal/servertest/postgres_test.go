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
	"strconv"
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

func TestPostgresKeepsItsDataOverStopAndKill(t *testing.T) {
	t.Parallel()
	s := servertest.Postgres(t)
	mustSQL(t, s, "CREATE TABLE kept (n int)")
	for i, end := range []func() error{s.Stop, s.Kill} {
		mustSQL(t, s, "INSERT INTO kept VALUES (1)")
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if got, err := sql(s, "SELECT 1"); err == nil {
			t.Errorf("a server that was ended answers %q", got)
		}
		if err := s.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, want := mustSQL(t, s, "SELECT sum(n) FROM kept"), []string{"1", "2"}[i]; got != want {
			t.Errorf("after end %d the table has %s rows, want %s", i+1, got, want)
		}
	}
}

func TestPostgresStopsWithClients(t *testing.T) {
	t.Parallel()
	s := servertest.Postgres(t)
	c, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	go func() { _, _ = sql(s, "SELECT pg_sleep(60)") }()
	for end := time.Now().Add(30 * time.Second); mustSQL(t, s, "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%sleep(60)' AND pid <> pg_backend_pid()") != "1"; {
		if time.Now().After(end) {
			t.Fatal("the sleeper does not come")
		}
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
}

func TestPostgresTakesArgumentsAndCleansUp(t *testing.T) {
	t.Parallel()
	s, err := servertest.StartPostgres(t.Context(), servertest.Options{Args: []string{"-c", "max_connections=7", "-c", "fsync=on"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := mustSQL(t, s, "SELECT current_setting('max_connections'), current_setting('fsync'), current_setting('listen_addresses')"); got != "7 on 127.0.0.1" {
		t.Errorf("settings %q", got)
	}
	if want := "postgres://postgres@" + s.Addr() + "/postgres?sslmode=disable"; s.URL() != want {
		t.Errorf("URL %s, want %s", s.URL(), want)
	}
	shared := sharedMemory(t, s)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if all, err := os.ReadFile("/proc/sysvipc/shm"); err == nil && strings.Contains(string(all), shared) {
		t.Errorf("shared memory %s is still there", shared)
	}
	if _, err := os.Stat(s.Dir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its folder is still there: %v", err)
	}
	if s, err := servertest.StartPostgres(t.Context(), servertest.Options{TLS: true}); err == nil {
		t.Errorf("%v speaks TLS", s)
	}
}

// sharedMemory is how the system names the server's memory: the key and the number, which is how its list begins a line.
func sharedMemory(t *testing.T, s *servertest.Server) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.Dir(), "postmaster.pid"))
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

func TestPostgresHasAClockOfItsOwn(t *testing.T) {
	t.Parallel()
	s, err := servertest.StartPostgres(t.Context(), servertest.Options{Clock: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range 2 {
		if err := s.Step(time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	seconds, err := strconv.ParseFloat(mustSQL(t, s, "SELECT extract(epoch FROM clock_timestamp())"), 64)
	if ahead := seconds - float64(time.Now().Unix()); err != nil || ahead < 7000 || ahead > 7400 {
		t.Errorf("ahead by %v s, %v; want two hours", ahead, err)
	}
}

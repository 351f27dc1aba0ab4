package redislock_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redisconn"
)

const secret = "S3cr3t-Pa55word"

// journal takes what is logged, by whatever logger.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// logged has everything that is logged by default go to a journal until the test's end. The test
// must not run in parallel.
func logged(t *testing.T) *journal {
	t.Helper()
	j := &journal{}
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(j, &slog.HandlerOptions{Level: slog.LevelDebug})))
	t.Cleanup(func() { slog.SetDefault(before) })
	return j
}

// refusals are the errors that servers answer: what each means for people, and whether asking again
// can help.
var refusals = []struct {
	text, means string
	final       bool
}{
	{"NOAUTH Authentication required.", "wants a password", true},
	{"WRONGPASS invalid username-password pair or user is disabled.", "does not accept this user name and password", true},
	{"NOPERM this user has no permissions to run the 'evalsha' command", "lacks a right", true},
	{"WRONGTYPE Operation against a key holding the wrong kind of value", "data of another type", true},
	{"CROSSSLOT Keys in request don't hash to the same slot", "different slots", true},
	{"NEWLAYOUT the value at this name is of a layout that this program does not know", "update this program", true},
	{"ERR unknown command 'EVALSHA', with args beginning with: 'f' '2' 'x' ", "lacks a command", true},
	{"ERR Function not found", "FUNCTION LOAD", true},
	{"READONLY You can't write against a read only replica.", "is a replica", false},
	{"LOADING Redis is loading the dataset in memory", "still loading", false},
	{"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.", "cannot save to disk", false},
	{"OOM command not allowed when used memory > 'maxmemory'.", "memory is full", false},
	{"CLUSTERDOWN The cluster is down", "does not cover every slot", false},
	{"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.", "busy with another client's script", false},
	{"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", "replica without a master", false},
	{"TRYAGAIN Multiple keys request during rehashing of slot", "slot is being moved", false},
	{"NOREPLICAS Not enough good replicas to write.", "fewer replicas than it wants", false},
}

// classed checks the error of a lock or a try: what it matches, what it says, and what it must
// never say.
func classed(t *testing.T, what string, err error, means string, final bool) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error", what)
		return
	}
	if errors.Is(err, driver.ErrRefused) != final || errors.Is(err, interlock.ErrUnavailable) == final {
		t.Errorf("%s: %v: refused %t, unavailable %t: want the one or the other, refused %t", what, err,
			errors.Is(err, driver.ErrRefused), errors.Is(err, interlock.ErrUnavailable), final)
	}
	if errors.Is(err, interlock.ErrHeld) || errors.Is(err, interlock.ErrLost) || errors.Is(err, interlock.ErrReleased) {
		t.Errorf("%s: %v: taken for a lock that is held, lost or released", what, err)
	}
	if !strings.Contains(err.Error(), means) {
		t.Errorf("%s: %v: does not say %q", what, err, means)
	}
	if strings.Contains(err.Error(), secret) {
		t.Errorf("%s: %v: tells the password", what, err)
	}
}

// R12: each error that a server answers is told as what it is: refused where asking again does not
// help, unavailable where it may. A lock is never taken for held by another because of it, and a
// release that was refused is never taken for done.
func TestR12_EveryErrorIsItsOwn(t *testing.T) {
	logs := logged(t)
	for _, r := range refusals {
		code, _, _ := strings.Cut(r.text, " ")
		t.Run(code, func(t *testing.T) {
			if testing.Short() && code != "NOPERM" && code != "READONLY" {
				t.Skip("one error of either class is enough here: make proof")
			}
			s := newScripted(t)
			url := "redis://locker:" + secret + "@" + s.Addr().String()
			client := open(t, url, &interlock.Options{TTL: 10 * time.Second, Patience: time.Second})
			lease := hold(t, client.Mutex("held"))
			reader := hold(t, shared{client.RWMutex("shared")})

			s.refuses(r.text)
			_, err := client.Mutex("m").TryLock(t.Context())
			classed(t, "try", err, r.means, r.final)
			_, err = client.Mutex("m").Lock(t.Context())
			classed(t, "lock", err, r.means, r.final)
			_, err = client.Semaphore("s", 2).Acquire(t.Context(), 1)
			classed(t, "acquire", err, r.means, r.final)
			if err := lease.Err(); err != nil {
				t.Errorf("what is held was given up: %v", err)
			}
			for what, l := range map[string]*interlock.Lease{"lease": lease, "reader": reader} {
				err := l.Release()
				if !errors.Is(err, interlock.ErrUncertain) || errors.Is(err, interlock.ErrLost) || errors.Is(err, interlock.ErrHeld) {
					t.Fatalf("release of the %s: %v, want %v", what, err, interlock.ErrUncertain)
				} else if !strings.Contains(err.Error(), r.means) || strings.Contains(err.Error(), secret) {
					t.Errorf("release of the %s: %v: want it to say %q", what, err, r.means)
				}
			}

			// The server recovers: what was to be released is, and locks can be had.
			s.says(nil)
			released := s.count(leaves)
			eventually(t, "the releases go on", func() bool { return s.count(leaves) >= released+2 })
			release(t, hold(t, client.Mutex("m")))
		})
	}
	if strings.Contains(logs.String(), secret) {
		t.Errorf("a log tells the password:\n%s", logs)
	}
}

// R12: an answer that nobody knows leaves the outcome open, so the claim is released.
func TestR12_AnUnknownAnswer(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	client := open(t, "redis://"+s.Addr().String(), &interlock.Options{TTL: 10 * time.Second, Patience: 300 * time.Millisecond})
	release(t, hold(t, client.Mutex("m")))
	for _, text := range []string{"ERR something is wrong", "WHATEVER", "ERR Error running script: user_script:1: attempt to index nil"} {
		s.refuses(text)
		released := s.count(leaves)
		_, err := client.Mutex("m").TryLock(t.Context())
		classed(t, text, err, strings.TrimPrefix(text, "ERR "), false)
		s.says(nil)
		eventually(t, "the claim is released", func() bool { return s.count(leaves) > released })
	}
}

// R12: no server, one that does not answer, and one that refuses the client, when a client is
// opened and afterwards.
func TestR12_OpeningFails(t *testing.T) {
	logs := logged(t)
	refuse := func(text string) func(words []string) string {
		return func(words []string) string {
			if words[0] == "HELLO" || words[0] == "AUTH" || words[0] == "INFO" {
				return "-" + text + "\r\n"
			}
			return ""
		}
	}
	s := newScripted(t)
	for _, r := range refusals[:3] {
		s.says(refuse(r.text))
		_, err := interlock.Open(t.Context(), "redis://locker:"+secret+"@"+s.Addr().String(), nil)
		if code, _, _ := strings.Cut(r.text, " "); code == "NOPERM" {
			if err != nil && (!errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), r.means)) {
				t.Errorf("%s: %v", r.text, err)
			}
			continue
		}
		if !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), r.means) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v, want it refused, and said that it %s", r.text, err, r.means)
		}
	}
	s.says(refuse("LOADING Redis is loading the dataset in memory"))
	_, err := interlock.Open(t.Context(), "redis://"+s.Addr().String(), &interlock.Options{Patience: time.Millisecond})
	if !errors.Is(err, driver.ErrNotSent) || !strings.Contains(err.Error(), "still loading") {
		t.Errorf("a server that is loading: %v", err)
	}
	s.says(nil)

	w := wire.New(t, s.Addr().String())
	url := "redis://locker:" + secret + "@" + w.Addr() + "?timeout=300ms"
	client := open(t, url, &interlock.Options{TTL: time.Second, Patience: 300 * time.Millisecond})
	lease := hold(t, client.Mutex("m"))
	for what, broken := range map[string]func() (mend func()){
		"nobody listens": func() func() {
			w.Refuse()
			w.Cut()
			return func() {
				if err := w.Accept(); err != nil {
					t.Error(err)
				}
			}
		},
		"nobody answers": func() func() { return w.Stall(wire.Both) },
	} {
		mend := broken()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		_, err := interlock.Open(ctx, url, nil)
		cancel()
		if !errors.Is(err, driver.ErrNotSent) || strings.Contains(err.Error(), secret) || !strings.Contains(err.Error(), w.Addr()) {
			t.Errorf("%s: opening: %v, want that nothing was sent, and where", what, err)
		}
		if what == "nobody listens" && !strings.Contains(err.Error(), "refused") {
			t.Errorf("%s: %v", what, err)
		}
		_, err = client.Mutex("n").TryLock(t.Context())
		classed(t, what+": try", err, "", false)
		_, err = client.Mutex("n").Lock(t.Context())
		classed(t, what+": lock", err, "", false)
		mend()
	}
	told(t, lease)
	if err := lease.Release(); !errors.Is(err, interlock.ErrLost) {
		t.Errorf("release of a lost lease: %v", err)
	}
	release(t, hold(t, client.Mutex("n")))
	if strings.Contains(logs.String(), secret) {
		t.Errorf("a log tells the password:\n%s", logs)
	}
}

// Wrong credentials at a real server, by URL and by file.
func TestWrongCredentials(t *testing.T) {
	t.Parallel()
	s := servertest.Redis(t, "--requirepass", "right")
	for _, at := range []string{"", ":" + secret + "@", "nobody:" + secret + "@", "default:" + secret + "@"} {
		_, err := interlock.Open(t.Context(), "redis://"+at+s.Addr(), nil)
		if !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), "password") || strings.Contains(err.Error(), secret) {
			t.Errorf("%q: %v, want it refused, and said that it is the password", at, err)
		}
	}
	release(t, hold(t, open(t, "redis://:right@"+s.Addr(), nil).Mutex("m")))
	// A password that is taken away while a client is open.
	client := open(t, "redis://:right@"+s.Addr(), &interlock.Options{TTL: 10 * time.Second, Patience: time.Second})
	lease := hold(t, client.Mutex("m"))
	as(t, redisconn.Config{Addrs: []string{s.Addr()}, Password: "right"},
		[]string{"CONFIG", "SET", "requirepass", "other"}, []string{"CLIENT", "KILL", "TYPE", "normal"})
	var err error
	eventually(t, "the broken connections are noticed", func() bool {
		_, err = client.Mutex("n").TryLock(t.Context())
		return !errors.Is(err, interlock.ErrUnavailable)
	})
	classed(t, "try", err, "password", true)
	if err := lease.Release(); !errors.Is(err, interlock.ErrUncertain) {
		t.Errorf("release: %v, want %v", err, interlock.ErrUncertain)
	}
}

// A key that is somebody's data, of whatever type, is refused and never touched.
func TestDataAtTheName(t *testing.T) {
	t.Parallel()
	s := servertest.Redis(t)
	client := open(t, s.URL(), &interlock.Options{TTL: 10 * time.Second, Patience: time.Second})
	for _, words := range [][]string{
		{"RPUSH", "list", "a"}, {"HSET", "hash", "a", "b"}, {"SADD", "set", "a"}, {"ZADD", "zset", "1", "a"}, {"XADD", "stream", "*", "a", "b"},
	} {
		name := words[1]
		s.MustDo(t, words...)
		before := s.MustDo(t, "DEBUG", "DIGEST-VALUE", name)
		for what, err := range map[string]error{
			"try": second(client.Mutex(name).TryLock(t.Context())), "lock": second(client.Mutex(name).Lock(t.Context())),
			"read": second(client.RWMutex(name).RLock(t.Context())), "permit": second(client.Semaphore(name, 2).Acquire(t.Context(), 1)),
		} {
			classed(t, name+": "+what, err, "data of another type", true)
		}
		if after := s.MustDo(t, "DEBUG", "DIGEST-VALUE", name); after != before {
			t.Errorf("the %s was touched", name)
		}
	}
	if keys := s.MustDo(t, "KEYS", "il:*"); keys != "" {
		t.Errorf("beside the data stand %q", keys)
	}
}

// as sends commands as some user.
func as(t *testing.T, user redisconn.Config, commands ...[]string) {
	t.Helper()
	conn, err := redisconn.Open(t.Context(), user)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, words := range commands {
		if _, err := conn.Do(t.Context(), redisconn.Command{Words: words}); err != nil {
			t.Fatalf("%q: %v", words, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

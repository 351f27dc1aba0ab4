//go:build linux || darwin

package redissonlock_test

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
)

// thread is what Redisson writes for a thread of a client.
const thread = `[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}:[0-9]+`

// What stands in Redis while a claim holds, and what is told when it has left, is Redisson's, byte
// by byte. Beside it are our own notes alone, and afterwards the counter alone.
func TestLayout(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t, redistest.Durable...)
	raw := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { _ = raw.Close() })
	a := newActor(t, byURL(t, server.Addr()), ages)
	for _, c := range []struct {
		kind             driver.Kind
		name             string
		fields           string // in order, with their values
		beside           []string
		stays            []string
		channel, message string
	}{
		{
			driver.Mutex, "m", `^` + thread + ` 1$`,
			[]string{`il:\{m\}:redisson:m`, `redisson_lock_token:\{m\}`},
			[]string{`redisson_lock_token:\{m\}`},
			"redisson_lock__channel:{m}", "0",
		},
		{
			driver.Mutex, "x{t}y", `^` + thread + ` 1$`,
			[]string{`il:\{t\}:redisson:x\{t\}y`, `redisson_lock_token:x\{t\}y`},
			[]string{`redisson_lock_token:x\{t\}y`},
			"redisson_lock__channel:x{t}y", "0",
		},
		{
			driver.Write, "w", `^` + thread + `:write 1 mode write$`,
			[]string{`il:\{w\}:redisson:w`, `redisson_lock_token:\{w\}`},
			[]string{`redisson_lock_token:\{w\}`},
			"redisson_rwlock:{w}", "1",
		},
		{
			driver.Read, "r", `^` + thread + ` 1 mode read$`,
			[]string{`il:\{r\}:redisson:r`, `\{r\}:` + thread + `:rwlock_timeout:1`},
			nil, "redisson_rwlock:{r}", "0",
		},
		{
			driver.Read, "q{t}", `^` + thread + ` 1 mode read$`,
			[]string{`il:\{t\}:redisson:q\{t\}`, `q\{t\}:` + thread + `:rwlock_timeout:1`},
			nil, "redisson_rwlock:q{t}", "0",
		},
	} {
		told := raw.Subscribe(t.Context(), c.channel)
		if _, err := told.Receive(t.Context()); err != nil {
			t.Fatal(err)
		}
		claim := claimOf(c.kind, c.name)
		a.holds(claim)
		if got := fieldsOf(t, raw, c.name); !regexp.MustCompile(c.fields).MatchString(got) {
			t.Errorf("%q holds %q, want %s", c.name, got, c.fields)
		}
		timed := []string{c.name}
		for i, key := range sameKeys(t, raw, c.name, c.beside, c.name) {
			if c.kind == driver.Read && i == 1 {
				timed = append(timed, key)
			}
		}
		for _, key := range timed {
			if left := raw.PTTL(t.Context(), key).Val(); left <= ages/2 || left > ages {
				t.Errorf("%q ends in %v, want the lease of %v", key, left, ages)
			}
		}
		a.releases(claim, true)
		sameKeys(t, raw, c.name, c.stays)
		ctx, cancel := context.WithTimeout(t.Context(), soon)
		m, err := told.ReceiveMessage(ctx)
		cancel()
		if err != nil || m.Payload != c.message {
			t.Errorf("%q: told %v, %v: want %q", c.name, m, err, c.message)
		}
		_ = told.Close()
		raw.FlushAll(t.Context())
	}
}

func fieldsOf(t *testing.T, raw *redis.Client, key string) string {
	t.Helper()
	all, err := raw.HGetAll(t.Context(), key).Result()
	if err != nil {
		t.Fatal(err)
	}
	var fields []string
	for f, v := range all {
		fields = append(fields, f+" "+v)
	}
	slices.Sort(fields)
	return strings.Join(fields, " ")
}

// sameKeys insists that the keys are these, and returns those beside the name.
func sameKeys(t *testing.T, raw *redis.Client, name string, patterns []string, also ...string) []string {
	t.Helper()
	keys, err := raw.Keys(t.Context(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(keys)
	var beside []string
	for _, key := range keys {
		if !slices.Contains(also, key) {
			beside = append(beside, key)
		}
	}
	ok := len(beside) == len(patterns) && len(keys) == len(beside)+len(also)
	for _, p := range patterns {
		ok = ok && slices.ContainsFunc(beside, func(key string) bool { return regexp.MustCompile("^" + p + "$").MatchString(key) })
	}
	if !ok {
		t.Errorf("%q: the keys are %q, want %q and %q", name, keys, also, patterns)
	}
	slices.SortFunc(beside, func(a, b string) int { // ours first
		return strings.Compare(strconv.FormatBool(!strings.HasPrefix(a, "il:"))+a, strconv.FormatBool(!strings.HasPrefix(b, "il:"))+b)
	})
	return beside
}

// What is no lock of the kind that is asked for is refused with the reason, and not touched.
func TestOtherKindsAreRefused(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t, redistest.Durable...)
	raw := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { _ = raw.Close() })
	a := newActor(t, byURL(t, server.Addr()), ages)
	soonOver := strconv.FormatInt(time.Now().Add(ages).UnixMilli(), 10)
	for _, c := range []struct {
		what  string
		make  [][]any
		kinds []driver.Kind
		says  string
	}{
		{"canonical", [][]any{{"SET", "canonical", "a value", "PX", "60000"}}, []driver.Kind{driver.Mutex, driver.Write, driver.Read}, "another layout"},
		{"data", [][]any{{"RPUSH", "data", "1"}}, []driver.Kind{driver.Mutex, driver.Write, driver.Read}, "a list stands there"},
		{"rlock", [][]any{{"HSET", "rlock", "03258cf3-357f-438e-ab16-5804e765ea3a:1", "1"}, {"PEXPIRE", "rlock", "60000"}}, []driver.Kind{driver.Write, driver.Read}, "a mutex stands there"},
		{"rwlock", [][]any{{"HSET", "rwlock", "mode", "read", "03258cf3-357f-438e-ab16-5804e765ea3a:1", "1"}, {"PEXPIRE", "rwlock", "60000"}}, []driver.Kind{driver.Mutex}, "a read/write lock stands there"},
		{"fair", [][]any{{"RPUSH", "redisson_lock_queue:{fair}", "x:1"}, {"ZADD", "redisson_lock_timeout:{fair}", soonOver, "x:1"}}, []driver.Kind{driver.Mutex, driver.Write}, "fair lock"},
		{"held fair", [][]any{
			{"HSET", "held fair", "03258cf3-357f-438e-ab16-5804e765ea3a:1", "1"},
			{"PEXPIRE", "held fair", "60000"},
			{"RPUSH", "redisson_lock_queue:{held fair}", "x:1"},
			{"ZADD", "redisson_lock_timeout:{held fair}", soonOver, "x:1"},
		}, []driver.Kind{driver.Mutex}, "fair lock"},
	} {
		for _, words := range c.make {
			if err := raw.Do(t.Context(), words...).Err(); err != nil {
				t.Fatal(err)
			}
		}
		before := dump(t, raw)
		for _, kind := range c.kinds {
			for _, queue := range []bool{false, true} {
				claim := claimOf(kind, c.what)
				claim.Queue = queue
				if g, err := a.s.Acquire(t.Context(), claim); !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), c.says) {
					t.Errorf("%s: a %v: %+v, %v: want %v that says %q", c.what, kind, g, err, driver.ErrRefused, c.says)
				}
				a.releases(claim, false)
			}
		}
		if after := dump(t, raw); after != before {
			t.Errorf("%s: refused claims have left %q, before it was %q", c.what, after, before)
		}
		raw.FlushAll(t.Context())
	}
	// A dead waiter of a fair lock, whose time is over, is in nobody's way.
	raw.RPush(t.Context(), "redisson_lock_queue:{left}", "x:1")
	raw.ZAdd(t.Context(), "redisson_lock_timeout:{left}", redis.Z{Score: float64(time.Now().Add(-time.Second).UnixMilli()), Member: "x:1"})
	left := claimOf(driver.Mutex, "left")
	a.holds(left)
	a.releases(left, true)
	permit := claimOf(driver.Permit, "permits")
	if _, err := a.s.Acquire(t.Context(), permit); !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), "semaphores") {
		t.Errorf("a permit: %v, want %v that says why", err, driver.ErrRefused)
	}
}

// dump is all keys with their values.
func dump(t *testing.T, raw *redis.Client) string {
	t.Helper()
	keys, err := raw.Keys(t.Context(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(keys)
	var b strings.Builder
	for _, key := range keys {
		b.WriteString(key + "=" + raw.Dump(t.Context(), key).Val() + ";")
	}
	return b.String()
}

// Programs that use another kind, or want another message, are told when they open.
func TestOpen(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t)
	url := "redisson://" + server.Addr()
	for rest, says := range map[string]string{
		"?strict=true":        "appendonly is off",
		"?sharding=sometimes": "want auto, on or off",
		"?functions=true":     `unknown parameter "functions"`,
		",other:6379":         "want one, or redisson+cluster://",
	} {
		client, err := interlock.Open(t.Context(), url+rest, nil)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("open …%s: %v, want an error that says %q", rest, err, says)
		}
		if client != nil {
			_ = client.Close()
		}
	}
	client, err := interlock.Open(t.Context(), url+"?sharding=off", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.Semaphore("s", 3).Err(); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a semaphore: %v, want %v", err, errors.ErrUnsupported)
	}
}

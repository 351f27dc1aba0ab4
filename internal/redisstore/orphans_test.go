package redisstore

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/redisconn"
)

// recorded is a client that notes which scripts are run, and when.
type recorded struct {
	redisconn.Conn

	mu    sync.Mutex
	runs  map[string][]time.Duration // by their first key
	began time.Time
	delay time.Duration // of an answer
}

func (r *recorded) Abandons() bool { return true }

func (r *recorded) Node(string) string { return "" }

func (r *recorded) DoAll(_ context.Context, cmds []redisconn.Command) []redisconn.Reply {
	r.mu.Lock()
	for _, cmd := range cmds {
		key := cmd.Words[cmd.First]
		r.runs[key] = append(r.runs[key], time.Since(r.began))
	}
	r.mu.Unlock()
	time.Sleep(r.delay)
	return make([]redisconn.Reply, len(cmds))
}

func (r *recorded) of(key string) []time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.runs[key])
}

// An orphan is released soon, then less often, but every half second, until its time is over; and
// one that is to be released once is, also if it comes while others are being released.
func TestOrphansAreReleasedForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		conn := &recorded{runs: map[string][]time.Duration{}, began: time.Now(), delay: 10 * time.Millisecond}
		o := NewOrphans(&Store{Conn: conn, Run: redisconn.Runner{Conn: conn}, Ctx: ctx, Timeout: time.Second})
		script := redisconn.NewScript("release", "return 1")
		add := func(key string, stay time.Duration) { o.Add(redisconn.Call{Script: script, Keys: []string{key}}, stay) }
		add("long", 5*time.Second)
		time.Sleep(55 * time.Millisecond) // its first release is under way
		add("once", 0)
		time.Sleep(time.Minute)
		runs := conn.of("long")
		last := time.Duration(0)
		for _, at := range runs {
			if at-last > 500*time.Millisecond {
				t.Errorf("not released between %v and %v, want at least every 500ms", last, at)
			}
			last = at
		}
		if len(runs) == 0 || runs[0] > 100*time.Millisecond || last < 4500*time.Millisecond || last > 6*time.Second {
			t.Errorf("released after %v; want it within 100ms, and then for 5s", runs)
		}
		if runs := conn.of("once"); len(runs) == 0 {
			t.Error("an orphan that came while others were being released was not released at all")
		}
		before := len(conn.of("long"))
		add("again", 0)
		time.Sleep(time.Minute)
		if len(conn.of("again")) != 1 || len(conn.of("long")) != before {
			t.Errorf("after all was over: %v, want one release of the new orphan", conn.runs)
		}
	})
}

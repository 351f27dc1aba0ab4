//go:build linux || darwin

package redissonlock_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
)

// What stands beside a name may be damaged: by hand, by a restore, by another program. Whoever asks
// is told at once, and which key it is; the name does not stay taken; who holds keeps what it has,
// also of other names, and can release it.
func TestDamageBesideANameIsAnErrorOfItsOwn(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t, redistest.Durable...)
	d := byURL(t, server.Addr())
	holder, other := newActor(t, d, ages), newActor(t, byURL(t, server.Addr()), ages)
	beside := holder.takes(driver.Mutex, "beside")
	look := d.(driver.Inspector)
	for _, c := range []struct {
		says, key string // in which m is the name
		write     []string
		held      bool // also who finds the name held meets it
		shown     bool // also a look meets it
	}{
		{"a word for a counter", "redisson_lock_token:{m}", []string{"SET", "", "abc"}, false, true},
		{"a list for a counter", "redisson_lock_token:{m}", []string{"RPUSH", "", "a"}, false, true},
		{"a counter below 0", "redisson_lock_token:{m}", []string{"SET", "", "-100"}, false, true},
		{"a counter that tokens are rounded of", "redisson_lock_token:{m}", []string{"SET", "", "9007199254740990"}, false, false},
		{"a counter that overflows", "redisson_lock_token:{m}", []string{"SET", "", "9223372036854775806"}, false, false},
		{"a string for notes", "il:{m}:redisson:m", []string{"SET", "", "a"}, true, true},
		{"a string for the places in line", "redisson_lock_timeout:{m}", []string{"SET", "", "a"}, true, false},
	} {
		damage := func(name string) (key string) {
			key = strings.NewReplacer("{m}", "{"+name+"}", ":m", ":"+name).Replace(c.key)
			words := append([]string{c.write[0], key}, c.write[2:]...)
			server.MustDo(t, "DEL", key)
			server.MustDo(t, words...)
			return key
		}
		refused := func(what string, err error, key string) {
			t.Helper()
			if !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), "is damaged") || !strings.Contains(err.Error(), key) {
				t.Fatalf("%s: %s: %v, want that %s is damaged", c.says, what, err, key)
			}
		}
		free := claimOf(driver.Mutex, "free: "+c.says)
		key := damage(free.Name)
		_, err := other.s.Acquire(t.Context(), free)
		refused("a free name", err, key)
		if n := server.MustDo(t, "EXISTS", free.Name); n != "0" {
			t.Errorf("%s: the name stays taken after an error", c.says)
		}
		if c.write[0] == "SET" && server.MustDo(t, "GET", key) != c.write[2] {
			t.Errorf("%s: it is %s after an error", c.says, server.MustDo(t, "GET", key))
		}
		server.MustDo(t, "DEL", key)

		mine := holder.takes(driver.Mutex, "held: "+c.says)
		next := other.queues(driver.Mutex, mine.Name)
		waits := other.waits(next)
		key = damage(mine.Name)
		for what, a := range map[string]actor{"who holds": holder, "who waits": other} {
			if r, err := a.s.Renew(t.Context()); err != nil || len(r.Lost) > 0 {
				t.Errorf("%s: a renewal of %s: %v, lost %d", c.says, what, err, len(r.Lost))
			}
		}
		if c.held {
			refused("who waits", within(t, "who waits is answered", waits), key)
		}
		lines, err := look.Lines(t.Context(), "")
		if len(lines) == 0 || lines[0].Name != beside.Name {
			t.Errorf("%s: listed are %+v, want the name that is sound", c.says, lines)
		}
		if c.shown {
			refused("a look", err, key)
		}
		holder.releases(mine, true)
		if !c.held {
			refused("who waits", within(t, "who waits is answered", waits), key)
		}
		server.MustDo(t, "DEL", key)
		if _, err := other.s.Release(t.Context(), next); err != nil {
			t.Error(err)
		}
	}
	holder.releases(beside, true)
}

//go:build linux || darwin

package redissonlock_test

import (
	"testing"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/examine/examinetest"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
)

// The doctor looks at the same settings here as at those of redislock, and at this store's own
// rights.
func TestDoctor(t *testing.T) {
	t.Parallel()
	s := servertest.Redis(t, redistest.Durable...)
	open := func(store string) *interlock.Client {
		c, err := interlock.Open(t.Context(), store, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	c := open("redisson://" + s.Addr())
	examinetest.Finds(t, "a server that is well", c, examinetest.Levels{}, interlock.Writing())
	s.MustDo(t, "CONFIG", "SET", "maxmemory-policy", "volatile-lru")
	examinetest.Finds(t, "one that would evict", c, examinetest.Levels{"eviction": examinetest.Warn})
	s.MustDo(t, "CONFIG", "SET", "maxmemory-policy", "noeviction")
	s.MustDo(t, "CONFIG", "SET", "appendonly", "no")
	examinetest.Finds(t, "one that keeps no log", c, examinetest.Levels{"persistence": examinetest.Warn})
	s.MustDo(t, "CONFIG", "SET", "appendonly", "yes")
	s.MustDo(t, "ACL", "SETUSER", "u", "on", ">secret", "~*", "&*", "+@all", "-hset")
	examinetest.Finds(t, "a user who may not write a hash", open("redisson://u:secret@"+s.Addr()), examinetest.Levels{"rights": examinetest.Bad})
}

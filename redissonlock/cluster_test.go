//go:build linux || darwin

package redissonlock_test

import (
	"context"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
)

// A slot moves to another master while somebody holds a name of it and another waits: messages of
// the shard come from the new one, and the old one ends the subscription. Whoever waits is told all
// the same, and the hold survives.
func TestSlotMovesWhileSomebodyWaits(t *testing.T) {
	t.Parallel()
	c := servertest.RedisCluster(t, 2, 0, redistest.Durable...)
	open := func() driver.Driver {
		d, err := driver.OpenURL(t.Context(), "redisson"+strings.TrimPrefix(c.URL(), "redis"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close(context.Background()) })
		return d
	}
	holder, waiter := newActor(t, open(), ages), newActor(t, open(), ages)
	for _, kind := range []driver.Kind{driver.Mutex, driver.Write} {
		mine, next := holder.takes(kind, "moves "+kind.String()), waiter.queues(kind, "moves "+kind.String())
		got := waiter.waits(next)
		slot := c.Slot(mine.Name)
		to := c.Nodes[0]
		if c.Owner(slot) == to {
			to = c.Nodes[1]
		}
		if err := c.Move(t.Context(), slot, to); err != nil {
			t.Fatal(err)
		}
		until(t, "the waiter does not listen at the new master", func() bool {
			channel := "redisson_lock__channel:{" + mine.Name + "}"
			if kind == driver.Write {
				channel = "redisson_rwlock:{" + mine.Name + "}"
			}
			count, err := to.Do("PUBSUB", "SHARDNUMSUB", channel)
			return err == nil && strings.HasSuffix(strings.TrimSpace(count), "1")
		})
		holder.releases(mine, true)
		if err := within(t, "the one who waits", got); err != nil {
			t.Fatal(err)
		}
		waiter.releases(next, true)
	}
}

// With sharding off, as Redisson before 3.22 has it, messages go to the whole Cluster.
func TestClusterWithoutSharding(t *testing.T) {
	t.Parallel()
	c := servertest.RedisCluster(t, 2, 0, redistest.Durable...)
	url := "redisson" + strings.TrimPrefix(c.URL(), "redis") + "?sharding=off"
	for _, name := range []string{"one", "two", "three", "four"} { // on both masters
		var actors []actor
		for range 2 {
			d, err := driver.OpenURL(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = d.Close(context.Background()) })
			actors = append(actors, newActor(t, d, ages))
		}
		mine, next := actors[0].takes(driver.Mutex, name), actors[1].queues(driver.Mutex, name)
		got := actors[1].waits(next)
		actors[0].releases(mine, true)
		if err := within(t, "the one who waits", got); err != nil {
			t.Fatal(err)
		}
		actors[1].releases(next, true)
	}
}

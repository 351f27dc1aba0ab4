package zklock_test

import (
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/foreigntest"
	"github.com/interlock-go/interlock/internal/servertest"
)

// Curator in Java and ours exclude and wake each other, by turns and three at once, and a Curator that dies is in nobody's way for longer than its session.
func TestCuratorAndOurs(t *testing.T) {
	t.Parallel()
	server := servertest.ZooKeeper(t)
	s, d, _, _ := opened(t, server)
	theirs := foreigntest.Start(t, foreigntest.CuratorMutex, []string{server.Addr()}, "shared", 20*time.Second)
	theirs.MustLock(t, 0)
	try, waits := mutex("shared"), mutex("shared")
	try.Queue = false
	asks(t, s, try, false)
	asks(t, s, waits, false)
	theirs.MustUnlock(t)
	awaits(t, s, waits)
	theirs.MustNotLock(t, "ours")

	theyWait := make(chan error, 1)
	go func() {
		_, err := theirs.Lock(patience)
		theyWait <- err
	}()
	stands := func() bool {
		line, err := d.(driver.Inspector).Line(within(t), "shared")
		return err == nil && len(line.Claims) == 2 && line.Claims[1].Foreign
	}
	waitFor(t, "Curator waits behind ours", stands)
	third := mutex("shared")
	asks(t, s, third, false)
	leaves(t, s, waits, true)
	if err := <-theyWait; err != nil {
		t.Fatalf("Curator behind ours: %v", err)
	}
	asks(t, s, third, false)
	theirs.MustUnlock(t)
	awaits(t, s, third)
	leaves(t, s, third, true)

	dies := foreigntest.Start(t, foreigntest.CuratorMutex, []string{server.Addr()}, "shared", 3*time.Second)
	dies.MustLock(t, patience)
	next := mutex("shared")
	asks(t, s, next, false)
	dies.Kill()
	awaits(t, s, next)
	leaves(t, s, next, true)
}

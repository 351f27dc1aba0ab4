package zklock_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/foreigntest"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/storetest"
)

// Curator in Java and ours exclude and wake each other, by turns and three at once.
func TestCuratorAndOurs(t *testing.T) {
	t.Parallel()
	server := servertest.ZooKeeper(t)
	s, d, _, _ := opened(t, server)
	theirs := foreigntest.Start(t, foreigntest.CuratorMutex, []string{server.Addr()}, "shared", 20*time.Second)
	theirs.MustLock(t, 0)
	try, waits := storetest.Mutex("shared"), storetest.Mutex("shared")
	try.Queue = false
	storetest.Asks(t, s, try, false)
	storetest.Asks(t, s, waits, false)
	theirs.MustUnlock(t)
	storetest.Awaits(t, s, waits)
	theirs.MustNotLock(t, "ours")

	theyWait := locks(theirs)
	stands := func() bool {
		line, err := d.(driver.Inspector).Line(within(t), "shared")
		return err == nil && len(line.Claims) == 2 && line.Claims[1].Foreign
	}
	storetest.Until(t, "Curator waits behind ours", stands)
	third := storetest.Mutex("shared")
	storetest.Asks(t, s, third, false)
	storetest.Leaves(t, s, waits, true)
	if err := <-theyWait; err != nil {
		t.Fatalf("Curator behind ours: %v", err)
	}
	storetest.Asks(t, s, third, false)
	theirs.MustUnlock(t)
	storetest.Awaits(t, s, third)
	storetest.Leaves(t, s, third, true)
}

// A Curator that dies is in nobody's way for longer than its session.
func TestACuratorThatDies(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a session of three seconds: make proof")
	}
	server := servertest.ZooKeeper(t)
	s, _, _, _ := opened(t, server)
	dies := foreigntest.Start(t, foreigntest.CuratorMutex, []string{server.Addr()}, "shared", 3*time.Second)
	dies.MustLock(t, patience)
	next := storetest.Mutex("shared")
	storetest.Asks(t, s, next, false)
	dies.Kill()
	storetest.Awaits(t, s, next)
	storetest.Leaves(t, s, next, true)
}

// Three parties at one lock by turns: ours, Curator in Java and go-zookeeper.
func TestGoZooKeeperCuratorAndOurs(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("three libraries, of which one is built: make proof")
	}
	server := servertest.ZooKeeper(t)
	s, d, _, _ := opened(t, server)
	goes := foreigntest.Start(t, foreigntest.GoZooKeeper, []string{server.Addr()}, "shared", 20*time.Second)
	java := foreigntest.Start(t, foreigntest.CuratorMutex, []string{server.Addr()}, "shared", 20*time.Second)
	inLine := func(n int) {
		t.Helper()
		storetest.Until(t, "who waits stands in line", func() bool { return waiters(t, d, "shared") == n })
	}
	ours := storetest.Mutex("shared")
	storetest.Asks(t, s, ours, true)
	goes.MustNotLock(t, "ours")
	first := locks(goes)
	inLine(1)
	second := locks(java)
	inLine(2)
	third := storetest.Mutex("shared")
	storetest.Asks(t, s, third, false)
	storetest.Leaves(t, s, ours, true)
	if err := <-first; err != nil {
		t.Fatalf("go-zookeeper behind ours: %v", err)
	}
	inLine(2)
	storetest.Asks(t, s, third, false)
	goes.MustUnlock(t)
	if err := <-second; err != nil {
		t.Fatalf("Curator behind go-zookeeper: %v", err)
	}
	storetest.Asks(t, s, third, false)
	java.MustUnlock(t)
	storetest.Awaits(t, s, third)
	goes.MustNotLock(t, "ours")
	storetest.Leaves(t, s, third, true)
	goes.MustLock(t, patience)
	goes.Kill() // its session ends, and nobody waits for longer
	storetest.Asks(t, s, storetest.Mutex("shared"), false)
}

// Curator's read/write lock and ours exclude each other as readers and writers do, in the order of
// coming.
func TestCuratorsReadWriteLockAndOurs(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("two processes of Java: make proof")
	}
	server := servertest.ZooKeeper(t)
	s, d, _, _ := opened(t, server)
	theirReader := foreigntest.Start(t, foreigntest.CuratorRead, []string{server.Addr()}, "shared", 20*time.Second)
	theirWriter := foreigntest.Start(t, foreigntest.CuratorWrite, []string{server.Addr()}, "shared", 20*time.Second)

	writes := of(driver.Write, "shared")
	storetest.Asks(t, s, writes, true)
	theirReader.MustNotLock(t, "our writer")
	theirWriter.MustNotLock(t, "our writer")
	storetest.Leaves(t, s, writes, true)

	theirReader.MustLock(t, patience)
	reads := of(driver.Read, "shared")
	writes = of(driver.Write, "shared")
	storetest.Asks(t, s, reads, true)
	theyWait := locks(theirWriter)
	storetest.Until(t, "Curator's writer waits behind readers", func() bool { return waiters(t, d, "shared") == 1 })
	behind := of(driver.Read, "shared")
	storetest.Asks(t, s, behind, false) // the writer is ahead
	storetest.Asks(t, s, writes, false)
	storetest.Leaves(t, s, reads, true)
	storetest.Asks(t, s, behind, false) // the other reader is still there
	theirReader.MustUnlock(t)
	if err := <-theyWait; err != nil {
		t.Fatalf("Curator's writer behind readers: %v", err)
	}
	theirWriter.MustUnlock(t)
	storetest.Awaits(t, s, behind)
	storetest.Asks(t, s, writes, false)
	theirWriter.MustNotLock(t, "our reader")
	storetest.Leaves(t, s, behind, true)
	storetest.Awaits(t, s, writes)
	storetest.Leaves(t, s, writes, true)
}

// Curator's semaphore of two and ours count the same leases, and let in who came first.
func TestCuratorsSemaphoreAndOurs(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a process of Java: make proof")
	}
	server := servertest.ZooKeeper(t)
	s, d, _, _ := opened(t, server)
	theirs := foreigntest.Start(t, foreigntest.CuratorSemaphore, []string{server.Addr()}, "shared", 20*time.Second)
	theirs.MustLock(t, patience)
	one, more, both := permit("shared", 1, 2), permit("shared", 1, 2), permit("shared", 2, 2)
	storetest.Asks(t, s, one, true)
	theirs.MustNotLock(t, "each of us one")
	storetest.Asks(t, s, more, false)
	storetest.Asks(t, s, both, false)
	theirs.MustUnlock(t)
	storetest.Awaits(t, s, more)
	theyWait := locks(theirs)
	storetest.Until(t, "Curator waits behind both", func() bool { return waiters(t, d, "shared") == 2 })
	storetest.Leaves(t, s, one, true)
	storetest.Asks(t, s, both, false)
	storetest.Leaves(t, s, more, true)
	storetest.Awaits(t, s, both)
	storetest.Leaves(t, s, both, true)
	if err := <-theyWait; err != nil {
		t.Fatalf("Curator behind ours: %v", err)
	}
	one, both = permit("shared", 1, 2), permit("shared", 2, 2)
	storetest.Asks(t, s, one, true)
	storetest.Asks(t, s, both, false)
	theirs.Kill() // and nothing is released before its session ends
	storetest.Asks(t, s, both, false)
	storetest.Leaves(t, s, one, true)
}

// A semaphore of one, and a mutex that is written as one, are Curator's InterProcessSemaphoreMutex.
func TestCuratorsSemaphoreMutexAndOurs(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a process of Java: make proof")
	}
	server := servertest.ZooKeeper(t)
	plain, _, _, _ := opened(t, server)
	d, _ := connect(t, server, "?mutex=semaphore")
	t.Cleanup(func() { _ = d.Close(context.Background()) })
	s, err := d.Open(within(t), driver.Spec{ID: driver.NewID(), TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	theirs := foreigntest.Start(t, foreigntest.CuratorSemaphoreMutex, []string{server.Addr()}, "shared", 20*time.Second)
	theirs.MustLock(t, patience)
	first, second := storetest.Mutex("shared"), storetest.Mutex("shared")
	storetest.Asks(t, s, first, false)
	storetest.Asks(t, s, second, false)
	theirs.MustUnlock(t)
	storetest.Awaits(t, s, first)
	theirs.MustNotLock(t, "our mutex")
	token := storetest.Asks(t, s, first, true).Fence
	_, err = plain.Acquire(within(t), permit("shared", 1, 1))
	refused(t, err, "has a mutex claim")
	_, err = plain.Acquire(within(t), storetest.Mutex("shared"))
	refused(t, err, "in use as a semaphore")
	storetest.Leaves(t, s, first, true)
	storetest.Awaits(t, s, second)
	if next := storetest.Asks(t, s, second, true).Fence; next < token+driver.Stride {
		t.Errorf("tokens %d, then %d", token, next)
	}
	storetest.Leaves(t, s, second, true)

	one := permit("shared", 1, 1)
	storetest.Asks(t, plain, one, true)
	theirs.MustNotLock(t, "our semaphore of one")
	storetest.Leaves(t, plain, one, true)
	theirs.MustLock(t, patience)
	one = permit("shared", 1, 1)
	storetest.Asks(t, plain, one, false)
	theirs.MustUnlock(t)
	storetest.Awaits(t, plain, one)
	storetest.Leaves(t, plain, one, true)
}

// Kazoo's locks in Python and ours in its layout exclude each other: its WriteLock and ReadLock as
// writers and readers, and its Lock as a mutex.
func TestKazooAndOurs(t *testing.T) {
	t.Parallel()
	server := servertest.ZooKeeper(t)
	d, _ := connect(t, server, "?layout=kazoo")
	t.Cleanup(func() { _ = d.Close(context.Background()) })
	s, err := d.Open(within(t), driver.Spec{ID: driver.NewID(), TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	for ours, theirs := range map[driver.Kind]foreigntest.Kind{driver.Mutex: foreigntest.KazooLock, driver.Write: foreigntest.KazooWrite, driver.Read: foreigntest.KazooRead} {
		t.Run(ours.String(), func(t *testing.T) {
			name := ours.String()
			they := foreigntest.Start(t, theirs, []string{server.Addr()}, name, 20*time.Second)
			rival := of(driver.Write, name)
			if ours == driver.Mutex {
				rival = of(driver.Mutex, name)
			}
			they.MustLock(t, patience)
			storetest.Asks(t, s, rival, false)
			if ours == driver.Read {
				behind := of(driver.Read, name)
				storetest.Asks(t, s, behind, false)
				storetest.Leaves(t, s, behind, false)
			}
			they.MustUnlock(t)
			storetest.Awaits(t, s, rival)
			they.MustNotLock(t, "ours")
			theyWait := locks(they)
			storetest.Until(t, "kazoo waits behind ours", func() bool { return waiters(t, d, name) == 1 })
			next := of(ours, name)
			storetest.Asks(t, s, next, false)
			storetest.Leaves(t, s, rival, true)
			if err := <-theyWait; err != nil {
				t.Fatalf("kazoo behind ours: %v", err)
			}
			if ours != driver.Read {
				storetest.Asks(t, s, next, false)
				they.MustUnlock(t)
			}
			storetest.Awaits(t, s, next)
			storetest.Leaves(t, s, next, true)
		})
	}
	_, err = s.Acquire(within(t), permit("seats", 1, 2))
	refused(t, err, "in kazoo's layout there are no permits")
}

// locks tells when another library has its lock.
func locks(c *foreigntest.Client) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := c.Lock(patience)
		done <- err
	}()
	return done
}

// waiters counts who waits, as people are shown it.
func waiters(t *testing.T, d driver.Driver, name string) (n int) {
	t.Helper()
	line, err := d.(driver.Inspector).Line(within(t), name)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range line.Claims {
		if !c.Held {
			n++
		}
	}
	return n
}

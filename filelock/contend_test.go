//go:build linux || darwin

package filelock

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/filelock/internal/layout"
	"github.com/interlock-go/interlock/filelock/internal/machine"
)

// board is a page that all contestants share: what they may only change while they hold the lock.
type board struct {
	inside   atomic.Int64  // who holds, 0 nobody
	fence    atomic.Uint64 // of the last holder
	entered  atomic.Int64  // how often the lock was held
	last     atomic.Int64  // who held it last
	handoffs atomic.Int64  // how often that was another process
	entries  atomic.Int64  // when the last one entered, on the boot-time clock
	gap      atomic.Int64  // the longest time between two entries
	overlaps atomic.Int64
	backward atomic.Int64 // tokens that did not grow
	stop     atomic.Bool
	by       [64]atomic.Int64 // entries by slot
	dying    [64]atomic.Bool  // about to be killed: whoever comes next may find it inside
}

// sharePage maps one page of memory that processes share, as a T of at most that size.
func sharePage[T any](path string) (*T, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := f.Truncate(layout.PageSize); err != nil {
		return nil, err
	}
	page, err := unix.Mmap(int(f.Fd()), 0, layout.PageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return (*T)(unsafe.Pointer(&page[0])), nil
}

func newBoard(t testing.TB) (*board, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "board")
	b, err := sharePage[board](path)
	if err != nil {
		t.Fatal(err)
	}
	return b, path
}

// enter and leave are the critical section of slot.
func (b *board) enter(slot int, fence uint64) {
	now := machine.BootClock()
	if was := b.entries.Swap(now); was != 0 && now-was > b.gap.Load() {
		b.gap.Store(now - was)
	}
	if was := b.inside.Swap(int64(slot)); was > 0 && !b.dying[was].Load() {
		b.overlaps.Add(1)
	}
	if b.fence.Swap(fence) >= fence {
		b.backward.Add(1)
	}
	b.entered.Add(1)
	b.by[slot].Add(1)
	if b.last.Swap(int64(slot)) != int64(slot) {
		b.handoffs.Add(1)
	}
}

// leave reports whether the slot was inside all the time.
func (b *board) leave(slot int) {
	if !b.inside.CompareAndSwap(int64(slot), 0) && !b.dying[slot].Load() {
		b.overlaps.Add(1)
	}
}

// contend takes the lock again and again until the board says stop, and prints how it went.
func contend(j task, in *bufio.Reader) error {
	b, err := sharePage[board](j.Board)
	if err != nil {
		return err
	}
	d, s, err := join(j)
	if err != nil {
		return err
	}
	go renewEvery(s, j.TTL/4)
	fmt.Println("ready")
	if _, err := in.ReadString('\n'); err != nil {
		return err
	}
	ctx := context.Background()
	requeue := s.(driver.Requeuer)
	c := mutexOf(j.Name)
	g, err := hold(ctx, s, c)
	for ; err == nil; g, err = hold(ctx, s, c) {
		b.enter(j.Slot, g.Fence)
		if j.Count > 0 && b.by[j.Slot].Load()%int64(j.Count) == 0 {
			machine.Nap(50 * time.Microsecond) // time to be seen in
		}
		b.leave(j.Slot)
		if b.stop.Load() {
			break
		}
		next := mutexOf(j.Name)
		if _, _, err = requeue.Requeue(ctx, c, next); err != nil {
			break
		}
		c = next
	}
	if err != nil {
		return err
	}
	if _, err := s.Release(ctx, c); err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(d.Stats()); err != nil {
		return err
	}
	return d.Close(ctx)
}

// clear is called when a slot's process was killed: it is not inside any more.
func (b *board) clear(slot int) {
	b.inside.CompareAndSwap(int64(slot), 0)
	b.dying[slot].Store(false)
}

func (b *board) judge(t *testing.T) {
	t.Helper()
	if n := b.overlaps.Load(); n > 0 {
		t.Errorf("%d times two were inside", n)
	}
	if n := b.backward.Load(); n > 0 {
		t.Errorf("%d tokens did not grow", n)
	}
}

func BenchmarkFreePair(b *testing.B) {
	_, s := openAt(b, filepath.Join(b.TempDir(), "store"), 10*time.Second)
	ctx := context.Background()
	b.ReportAllocs()
	defer processorTime(b)()
	for b.Loop() {
		c := mutexOf("free")
		if g, err := s.Acquire(ctx, c); err != nil || !g.Held {
			b.Fatal(g, err)
		}
		if _, err := s.Release(ctx, c); err != nil {
			b.Fatal(err)
		}
	}
}

// processorTime reports what an operation costs where the clock says little because the machine is shared.
func processorTime(b *testing.B) func() {
	b.Helper()
	used := func() time.Duration {
		var r unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
			b.Fatal(err)
		}
		return time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	before := used()
	return func() { b.ReportMetric(float64(used()-before)/float64(b.N), "cpu-ns/op") }
}

func BenchmarkFlockPair(b *testing.B) {
	path := filepath.Join(b.TempDir(), "f")
	defer processorTime(b)()
	for b.Loop() {
		fd, err := unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
		if err != nil {
			b.Fatal(err)
		}
		if err := unix.Flock(fd, unix.LOCK_EX); err != nil {
			b.Fatal(err)
		}
		unix.Close(fd)
	}
}

func BenchmarkHandoff(b *testing.B) {
	for _, n := range []int{2, 8} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			board, path := newBoard(b)
			dir := filepath.Join(b.TempDir(), "store")
			var ws []*worker
			for i := range n {
				w := startWorker(b, task{Do: "contend", Dir: dir, Name: "n", Board: path, TTL: 10 * time.Second, Slot: i + 1})
				w.hear(b, "ready")
				ws = append(ws, w)
			}
			for _, w := range ws {
				w.say(b, "go")
			}
			from, at := board.handoffs.Load(), time.Now()
			for board.handoffs.Load() < from+int64(b.N) {
				time.Sleep(time.Millisecond)
			}
			took := time.Since(at)
			board.stop.Store(true)
			b.ReportMetric(float64(board.handoffs.Load()-from)/took.Seconds(), "handoffs/s")
			b.ReportMetric(float64(board.gap.Load())/1e6, "longest-ms")
			var used time.Duration
			for _, w := range ws {
				line, _ := w.out.ReadString('\n')
				if line == "" {
					b.Error("a worker failed")
				}
				_ = w.cmd.Wait()
				used += w.cmd.ProcessState.UserTime() + w.cmd.ProcessState.SystemTime()
			}
			b.ReportMetric(float64(used)/float64(board.handoffs.Load()), "cpu-ns/handoff")
		})
	}
}

//go:build linux || darwin

package torture

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// diary is where one life of a worker writes down what happens to it: a file that it maps into its memory and of which
// every field is written by one atomic store. So nothing that was written is lost when the process is killed, and the
// conductor, which has it mapped, too, can look into it at any time.
//
// A record belongs to one call of Lock. Its fields are written in the order in which things happen, and asked, the
// first, makes it valid.
type diary struct {
	head    *diaryHead
	records []record
	memory  []byte
}

type diaryHead struct {
	ready    atomic.Int64 // the worker is up
	end      atomic.Int64 // when to stop asking: said by the conductor when all are up
	beat     atomic.Int64 // when it last said that it runs
	used     atomic.Int64 // records, and more than there are when it ran out of them
	silent   atomic.Int64 // spans in silences, and more than there are when there was no room
	holding  atomic.Int64 // leases right now
	grants   atomic.Int64
	losses   atomic.Int64
	cuts     atomic.Int64    // of the link to the store
	wants    atomic.Int64    // its link struck, of the conductor
	traces   [4]atomic.Int64 // goroutines and descriptors, before the store was opened and when all was closed
	_        [16]byte
	silences [maxSilences]struct{ from, to atomic.Int64 }
}

type record struct {
	asked, granted, valid, trust, told, leaving, left atomic.Int64
	since                                             atomic.Int64 // µs, by the store's clock
	fence                                             atomic.Uint64
	read, value                                       atomic.Int64
	outcome, write                                    atomic.Uint32
	name, goroutine                                   atomic.Int32
	why                                               [96]byte // the reason of the loss
}

const (
	maxSilences = 1 << 14
	// diaryRecords is how many calls of Lock a life can write down. The file is sparse: only what is used costs memory.
	diaryRecords = 1 << 16
)

const (
	beatEvery    = 2 * time.Millisecond
	silenceAfter = 6 * time.Millisecond // a beat that comes later ends a silence
)

var errDiaryFull = errors.New("torture: the diary is full")

// openDiary maps the diary in the file at path, which it makes if it is missing.
func openDiary(path string) (*diary, error) {
	size := int(unsafe.Sizeof(diaryHead{}) + diaryRecords*unsafe.Sizeof(record{}))
	memory, err := mapFile(path, size)
	if err != nil {
		return nil, err
	}
	d := &diary{head: (*diaryHead)(unsafe.Pointer(&memory[0])), memory: memory}
	d.records = unsafe.Slice((*record)(unsafe.Pointer(&memory[unsafe.Sizeof(diaryHead{})])), diaryRecords)
	return d, nil
}

// mapFile maps a file, which all processes share, and makes it as large as it must be.
func mapFile(path string, size int) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := f.Truncate(int64(size)); err != nil {
		return nil, err
	}
	memory, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("torture: map %s: %w", path, err)
	}
	return memory, nil
}

func (d *diary) close() error { return unix.Munmap(d.memory) }

// ask begins a record: Lock is about to be called.
func (d *diary) ask(name, goroutine int) (*record, error) {
	n := d.head.used.Add(1)
	if n > int64(len(d.records)) {
		return nil, errDiaryFull
	}
	r := &d.records[n-1]
	r.name.Store(int32(name))
	r.goroutine.Store(int32(goroutine))
	r.asked.Store(int64(now()))
	return r, nil
}

// awaitStart returns when the conductor has said until when to go on.
func (d *diary) awaitStart() instant {
	for d.head.end.Load() == 0 {
		pause(time.Millisecond, nil)
	}
	return instant(d.head.end.Load())
}

// beats is how many goroutines of a worker say that it runs. One is not enough: on a starved machine some of the threads
// of a process run and others do not, and those that do not may be the ones that have something to tell.
const beats = 3

// beat says every 2 ms that the process runs, until stop is closed, and writes down when it did not.
func (d *diary) beat(stop <-chan struct{}) {
	ticks := time.NewTicker(beatEvery)
	defer ticks.Stop()
	last := now()
	for {
		d.head.beat.Store(int64(last))
		select {
		case <-stop:
			return
		case <-ticks.C:
		}
		t := now()
		if t.sub(last) > silenceAfter {
			if i := d.head.silent.Add(1) - 1; i < maxSilences {
				d.head.silences[i].from.Store(int64(last))
				d.head.silences[i].to.Store(int64(t))
			}
		}
		last = t
	}
}

// life reads what the diary says. The process has ended, or the reader takes what there is.
func (d *diary) life(slot, number int) *life {
	l := &life{slot: slot, number: number, lastBeat: instant(d.head.beat.Load())}
	silent, used := d.head.silent.Load(), d.head.used.Load()
	for i := range min(silent, maxSilences) {
		s := &d.head.silences[i]
		l.silences = append(l.silences, span{instant(s.from.Load()), instant(s.to.Load())})
	}
	l.silences = union(l.silences)
	l.full = used > int64(len(d.records)) || silent > maxSilences
	for i := range min(used, int64(len(d.records))) {
		r := &d.records[i]
		if r.asked.Load() == 0 {
			continue // killed in the instruction before
		}
		l.handles = append(l.handles, &handle{
			life: l, name: int(r.name.Load()), goroutine: int(r.goroutine.Load()),
			asked: instant(r.asked.Load()), granted: instant(r.granted.Load()), valid: instant(r.valid.Load()),
			trust: instant(r.trust.Load()), told: instant(r.told.Load()), why: strings.ToValidUTF8(string(bytes.TrimRight(r.why[:], "\x00")), ""), leaving: instant(r.leaving.Load()), left: instant(r.left.Load()),
			since: r.since.Load(), outcome: outcome(r.outcome.Load()), fence: r.fence.Load(),
			write: writing(r.write.Load()), read: r.read.Load(), value: r.value.Load(),
		})
	}
	return l
}

func unmap(p unsafe.Pointer, size uintptr) error {
	return unix.Munmap(unsafe.Slice((*byte)(p), size))
}

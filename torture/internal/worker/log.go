//go:build linux || darwin

package worker

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/internal/workers"
	"github.com/interlock-go/interlock/internal/workers/monotonic"
	"github.com/interlock-go/interlock/torture/internal/history"
)

// Log is where one life of a worker logs what happens to it: a file that it maps into its memory
// and of which every field is written by one atomic store. So nothing that was written is lost when
// the process is killed, and the conductor, which has it mapped, too, can read it at any time.
//
// A record belongs to one call of Lock. Its fields are written in the order in which things happen,
// and asked, the first, makes it valid.
type Log struct {
	head    logHead
	records [logRecords]record
}

type logHead struct {
	ready   atomic.Int64 // the worker is up
	end     atomic.Int64 // when to stop asking: said by the conductor when all are up
	beat    atomic.Int64 // when it last ran
	used    atomic.Int64 // records, and more than there are when it ran out of them
	silent  atomic.Int64 // spans in silences, and more than there are when there was no room
	holding atomic.Int64 // leases right now
	grants  atomic.Int64
	losses  atomic.Int64
	cuts    atomic.Int64 // of the link to the store
	wants   atomic.Int64 // 1: the conductor is to damage its links
	// prints are goroutines and descriptors, before the store was opened and when all was closed.
	prints   [4]atomic.Int64
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
	// logRecords is how many calls of Lock a life can log. The file is sparse: only what is used
	// costs memory.
	logRecords = 1 << 16
)

// SilenceAfter is how long after a beat the next one comes at the latest, unless the process did
// not run in between: a beat that comes later ends a silence.
const SilenceAfter = 3 * beatEvery

const beatEvery = 2 * time.Millisecond

var errLogFull = errors.New("torture: the log is full")

// OpenLog maps the log in the file at path, which it makes if it is missing.
func OpenLog(path string) (*Log, error) { return workers.Map[Log](path) }

// Close unmaps the log.
func (l *Log) Close() error { return workers.Unmap(l) }

// ask begins a record: Lock is about to be called.
func (l *Log) ask(name, goroutine int) (*record, error) {
	n := l.head.used.Add(1)
	if n > int64(len(l.records)) {
		return nil, errLogFull
	}
	r := &l.records[n-1]
	r.name.Store(int32(name))
	r.goroutine.Store(int32(goroutine))
	r.asked.Store(int64(monotonic.Now()))
	return r, nil
}

// awaitStart returns when the conductor has said until when to go on.
func (l *Log) awaitStart() monotonic.Instant {
	for l.head.end.Load() == 0 {
		monotonic.Pause(time.Millisecond, nil)
	}
	return monotonic.Instant(l.head.end.Load())
}

// beats is how many goroutines of a worker log that it runs. One is not enough: on a starved
// machine some threads of a process run and others do not, and those may be the ones of its
// holders.
const beats = 3

// Pulse starts goroutines that log that the process runs, until stop is called.
func (l *Log) Pulse() (stop func()) {
	over := make(chan struct{})
	var all sync.WaitGroup
	for range beats {
		all.Go(func() { l.beat(over) })
	}
	return func() {
		close(over)
		all.Wait()
	}
}

// beat logs every 2 ms that the process runs, until stop is closed, and when it did not.
func (l *Log) beat(stop <-chan struct{}) {
	ticks := time.NewTicker(beatEvery)
	defer ticks.Stop()
	last := monotonic.Now()
	for {
		l.head.beat.Store(int64(last))
		select {
		case <-stop:
			return
		case <-ticks.C:
		}
		t := monotonic.Now()
		if t.Sub(last) > SilenceAfter {
			if i := l.head.silent.Add(1) - 1; i < maxSilences {
				l.head.silences[i].from.Store(int64(last))
				l.head.silences[i].to.Store(int64(t))
			}
		}
		last = t
	}
}

// Life returns what was logged so far.
func (l *Log) Life(slot, number int) *history.Life {
	life := &history.Life{Slot: slot, Number: number, LastBeat: monotonic.Instant(l.head.beat.Load())}
	silent, used := l.head.silent.Load(), l.head.used.Load()
	for i := range min(silent, maxSilences) {
		s := &l.head.silences[i]
		life.Silences = append(life.Silences, monotonic.Span{From: monotonic.Instant(s.from.Load()), To: monotonic.Instant(s.to.Load())})
	}
	life.Silences = monotonic.Union(life.Silences)
	life.Full = used > int64(len(l.records)) || silent > maxSilences
	for i := range min(used, int64(len(l.records))) {
		r := &l.records[i]
		if r.asked.Load() == 0 {
			continue // killed in the instruction before
		}
		life.Calls = append(life.Calls, &history.Call{
			Life: life, Name: int(r.name.Load()), Goroutine: int(r.goroutine.Load()),
			Asked: monotonic.Instant(r.asked.Load()), Granted: monotonic.Instant(r.granted.Load()), Valid: monotonic.Instant(r.valid.Load()),
			Trust: monotonic.Instant(r.trust.Load()), Told: monotonic.Instant(r.told.Load()), Why: strings.ToValidUTF8(string(bytes.TrimRight(r.why[:], "\x00")), ""), Leaving: monotonic.Instant(r.leaving.Load()), Left: monotonic.Instant(r.left.Load()),
			Since: r.since.Load(), Outcome: history.Outcome(r.outcome.Load()), Fence: r.fence.Load(),
			Write: history.WriteOutcome(r.write.Load()), Read: r.read.Load(), Value: r.value.Load(),
		})
	}
	return life
}

// footprints returns what logFootprint logged; nil if the worker did not come to that.
func (l *Log) footprints(path string) *history.Footprints {
	t := &l.head.prints
	if t[0].Load() == 0 {
		return nil
	}
	at := func(i int) history.Footprint {
		return history.Footprint{Goroutines: t[i].Load(), Descriptors: t[i+1].Load()}
	}
	out := &history.Footprints{Was: at(0), Left: at(2)}
	if text, err := os.ReadFile(path); err == nil {
		out.What = string(text[:min(len(text), 4000)])
	}
	return out
}

// leftFile is the file in which a worker lists what it has left that should be gone.
func leftFile(log string) string { return log + "-left" }

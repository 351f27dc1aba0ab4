package interlockotel_test

import (
	"context"
	"maps"
	"strconv"
	"sync"
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/contrib/interlockotel"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

func TestTracer_MeasuresWaitsAndHolds(t *testing.T) {
	play(t, interlockotel.Options{Store: "main"}, func(s *scene) {
		l := s.lock(s.Context(), s.traced, "m")
		passed := make(chan struct{})
		go func() {
			defer close(passed)
			s.lock(s.Context(), s.traced, "m").Release()
		}()
		time.Sleep(5 * time.Millisecond)
		during := s.read()
		l.Release()
		<-passed
		l = s.lock(s.Context(), s.other, "m")
		if _, err := s.traced.Mutex("m").TryLock(s.Context()); err == nil {
			s.Error("a lock that is held was granted")
		}
		l.Release()
		permit, err := s.traced.Semaphore("s", 2).Acquire(s.Context(), 1)
		if err != nil {
			s.Fatal(err)
		}
		time.Sleep(time.Minute)
		after := s.read()
		permit.Release()

		for key, want := range map[string]map[string]float64{
			"interlock.waiters {call}":  {"": 1},
			"interlock.holders {lease}": {"": 1},
		} {
			if !maps.Equal(during[key], want) {
				s.Errorf("%s: %v while one holds and one waits, want %v", key, during[key], want)
			}
		}
		for key, want := range map[string]map[string]float64{
			"interlock.wait s": {
				"kind=mutex,result=granted": 1, "kind=mutex,result=passed": 1, "kind=mutex,result=held": 1, "kind=permit,result=granted": 1,
			},
			"interlock.hold s":          {"kind=mutex": 2},
			"interlock.passes {lease}":  {"": 1},
			"interlock.waiters {call}":  {},
			"interlock.holders {lease}": {"": 1},
		} {
			if !maps.Equal(after[key], want) {
				s.Errorf("%s: %v, want %v", key, after[key], want)
			}
		}
		if n := after["interlock.renewals {renewal}"]["result=ok"]; n < 10 || after["interlock.renew.slack s"][""] < 10 {
			s.Errorf("in a minute %v renewals, and %v with a slack", n, after["interlock.renew.slack s"][""])
		}
	})
}

func TestTracer_CountsLossesByReason(t *testing.T) {
	play(t, interlockotel.Options{Store: "main"}, func(s *scene) {
		lost := map[string]float64{}
		for _, r := range []interlock.Reason{
			interlock.LostExpired, interlock.LostStalled, interlock.LostSession, interlock.LostGone, interlock.LostBroken, interlock.LostMaxHold,
			interlock.LostShutdown,
		} {
			s.tracer.HoldEnd(s.Context(), interlock.HoldEnd{Name: "m", Kind: driver.Mutex, Reason: r, Err: interlock.ErrLost})
			lost["reason="+string(r)] = 1
		}
		l := s.lock(s.Context(), s.traced, "m")
		s.store.Lose("m")
		<-l.Context().Done()
		lost["reason=gone"]++
		if got := s.read()["interlock.lost {lease}"]; !maps.Equal(got, lost) {
			s.Errorf("losses: %v, want %v", got, lost)
		}
		l.Release()
		l = s.lock(s.Context(), s.traced, "m")
		resume := s.wire.Stall()
		l.Release()
		resume()
		if got := s.read()["interlock.uncertain {release}"]; got[""] != 1 {
			s.Errorf("releases that are not confirmed: %v, want one", got)
		}
	})
}

// A name is an attribute where the program says so, and then there are few of them.
func TestTracer_NamesAreFew(t *testing.T) {
	play(t, interlockotel.Options{Store: "main", Name: func(lock string) string { return lock }}, func(s *scene) {
		for i := range 300 {
			s.lock(s.Context(), s.traced, strconv.Itoa(i)).Release()
		}
		got := s.read()["interlock.hold s"]
		if len(got) != 101 || got["kind=mutex,name=other"] != 200 || got["kind=mutex,name=99"] != 1 {
			s.Errorf("%d names, of which %v locks are among the others; want 100 and these", len(got), got["kind=mutex,name=other"])
		}
	})
}

// The same from many goroutines, while others read.
func TestTracer_InACrowd(t *testing.T) {
	const goroutines, each = 16, 50
	reader := sdkmetric.NewManualReader()
	tracer, err := interlockotel.New(&interlockotel.Options{Store: "main", MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))})
	if err != nil {
		t.Fatal(err)
	}
	c, err := interlock.New(memlock.New(), &interlock.Options{Tracer: tracer})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for range each {
				if err := c.Mutex("m").Do(t.Context(), func(context.Context) error { return nil }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	read := readAll(t, reader)
	sum := 0.0
	for _, n := range read["interlock.wait s"] {
		sum += n
	}
	if sum != goroutines*each || read["interlock.hold s"]["kind=mutex"] != goroutines*each {
		t.Errorf("%v waits and %v holds are counted, want %d", sum, read["interlock.hold s"], goroutines*each)
	}
	if len(read["interlock.waiters {call}"])+len(read["interlock.holders {lease}"]) > 0 {
		t.Errorf("at the end: %v", read)
	}
}

// Without an SDK nothing is told to anybody, and locks work.
func TestTracer_WithoutAnSDK(t *testing.T) {
	tracer, err := interlockotel.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := interlock.New(memlock.New(), &interlock.Options{Tracer: tracer})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Mutex("m").Do(t.Context(), func(context.Context) error { return nil }); err != nil {
		t.Error(err)
	}
}

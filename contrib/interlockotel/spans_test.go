package interlockotel_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/contrib/interlockotel"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

// The request of a user: it waits for 3 s, holds for 2 and does something meanwhile.
func TestTracer_SpansOfAWaitAndAHold(t *testing.T) {
	play(t, interlockotel.Options{Store: "main"}, func(s *scene) {
		before := s.lock(s.Context(), s.other, "m")
		time.AfterFunc(3*time.Second, func() { before.Release() })
		ctx, request := s.spans.Start(s.Context(), "request")
		l := s.lock(ctx, s.traced, "m")
		_, work := s.spans.Start(l.Context(), "work")
		time.Sleep(2 * time.Second)
		work.End()
		fence := l.Fence()
		l.Release()
		request.End()

		requests, waits, holds, works := s.ended("request"), s.ended("interlock.wait"), s.ended("interlock.hold"), s.ended("work")
		if len(waits) != 1 || len(holds) != 1 {
			s.Fatalf("%d waits and %d holds, want one of each", len(waits), len(holds))
		}
		wait, hold, caller := waits[0], holds[0], requests[0].SpanContext.SpanID()
		if wait.Parent.SpanID() != caller || hold.Parent.SpanID() != caller {
			s.Error("want wait and hold as children of the caller's span")
		}
		if works[0].Parent.SpanID() != hold.SpanContext.SpanID() {
			s.Error("what is done with the lease's context is no child of the hold")
		}
		if !linksTo(hold, wait) || len(wait.Links) != 0 {
			s.Errorf("links: %v of the hold, want its wait; %v of the wait, want none: another process holds", hold.Links, wait.Links)
		}
		if d := wait.EndTime.Sub(wait.StartTime); d != 3*time.Second || wait.SpanKind != trace.SpanKindClient {
			s.Errorf("the wait is a %v span of %v", wait.SpanKind, d)
		}
		if d := hold.EndTime.Sub(hold.StartTime); d != 2*time.Second {
			s.Errorf("the hold lasts %v, want 2s", d)
		}
		if wait.Status.Code != codes.Unset || hold.Status.Code != codes.Unset {
			s.Errorf("states %v and %v, want none", wait.Status, hold.Status)
		}
		for key, want := range map[string]string{
			interlock.AttributeName: "m", interlock.AttributeKind: "mutex", interlock.AttributeStore: "main", interlock.AttributeResult: "granted",
		} {
			if got := attributeOf(wait, attribute.Key(key)); got != want {
				s.Errorf("%s of the wait is %q, want %q", key, got, want)
			}
			if got := attributeOf(hold, attribute.Key(key)); got != want && key != interlock.AttributeResult {
				s.Errorf("%s of the hold is %q, want %q", key, got, want)
			}
		}
		if got := attributeOf(hold, interlock.AttributeFence); got != strconv.FormatUint(fence, 10) {
			s.Errorf("the fence is %q, want %d", got, fence)
		}
	})
}

// Who waits for a lease of this process is linked to it, over any client; and when that has gone nobody is.
func TestTracer_AWaitIsLinkedToTheHolderInThisProcess(t *testing.T) {
	play(t, interlockotel.Options{Store: "main"}, func(s *scene) {
		second := s.client(s.store.Share(), &interlock.Options{Tracer: s.tracer})
		l := s.lock(s.Context(), s.traced, "m")
		waiting := make(chan struct{})
		go func() {
			defer close(waiting)
			s.lock(s.Context(), second, "m").Release()
		}()
		time.Sleep(time.Second)
		l.Release()
		<-waiting
		s.lock(s.Context(), s.traced, "m").Release()
		waits, holds := s.ended("interlock.wait"), s.ended("interlock.hold")
		if !linksTo(waits[1], holds[0]) {
			s.Errorf("who waited has the links %v, want the hold it waited for", waits[1].Links)
		}
		if len(waits[0].Links)+len(waits[2].Links) > 0 {
			s.Error("who had not to wait has a link")
		}
		readers := s.traced.RWMutex("r")
		r, err := readers.RLock(s.Context())
		if err != nil {
			s.Fatal(err)
		}
		if _, err := readers.TryLock(s.Context()); err == nil {
			s.Error("granted beside a reader")
		}
		r.Release()
		if w := s.ended("interlock.wait"); len(w[len(w)-1].Links) > 0 {
			s.Error("who waits for readers has a link to one of them")
		}
	})
}

// What a store's client does while a lock is asked for is a child of the wait.
func TestTracer_TheStoresSpansBelongToTheWait(t *testing.T) {
	play(t, interlockotel.Options{Store: "main"}, func(s *scene) {
		d := &watched{Driver: memlock.New()}
		c, err := interlock.New(d, &interlock.Options{Tracer: s.tracer})
		if err != nil {
			s.Fatal(err)
		}
		defer c.Close()
		s.lock(s.Context(), c, "m").Release()
		if wait := s.ended("interlock.wait")[0]; d.during.SpanID() != wait.SpanContext.SpanID() {
			s.Error("the driver is called with another span than the wait's")
		}
	})
}

// watched keeps the span with which it is asked.
type watched struct {
	*memlock.Driver
	during trace.SpanContext
}

func (d *watched) Open(ctx context.Context, spec driver.Spec) (driver.Session, error) {
	s, err := d.Driver.Open(ctx, spec)
	return watchedSession{s, d}, err
}

type watchedSession struct {
	driver.Session
	d *watched
}

func (s watchedSession) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	s.d.during = trace.SpanContextFromContext(ctx)
	return s.Session.Acquire(ctx, c)
}

// Only what is a fault has the status error.
func TestTracer_SpansOfWhatFails(t *testing.T) {
	play(t, interlockotel.Options{Store: "main"}, func(s *scene) {
		l := s.lock(s.Context(), s.other, "m")
		if _, err := s.traced.Mutex("m").TryLock(s.Context()); err == nil {
			s.Error("a lock that is held was granted")
		}
		l.Release()
		resume := s.wire.Stall()
		if _, err := s.traced.Mutex("m").TryLock(s.Context()); err == nil {
			s.Error("a silent store granted a lock")
		}
		resume()
		waits := s.ended("interlock.wait")
		if w := waits[0]; w.Status.Code != codes.Unset || attributeOf(w, interlock.AttributeOwner) != "other" || attributeOf(w, interlock.AttributeResult) != "held" {
			s.Errorf("a wait that somebody else has: %v %v", w.Status, w.Attributes)
		}
		if w := waits[1]; w.Status.Code != codes.Error || attributeOf(w, "error.type") != "unavailable" {
			s.Errorf("a wait at a silent store: %v %v", w.Status, w.Attributes)
		}

		l = s.lock(s.Context(), s.traced, "m")
		time.Sleep(time.Second)
		s.store.Lose("m")
		<-l.Context().Done()
		s.ended("")
		time.Sleep(time.Minute)
		l.Release()
		l = s.lock(s.Context(), s.traced, "m")
		resume = s.wire.Stall()
		l.Release()
		resume()
		holds := s.ended("interlock.hold")
		if h := holds[0]; h.Status.Code != codes.Error || attributeOf(h, interlock.AttributeReason) != "gone" || h.EndTime.Sub(h.StartTime) != time.Second {
			s.Errorf("a lease that was lost after a second: %v %v from %v to %v", h.Status, h.Attributes, h.StartTime, h.EndTime)
		}
		if h := holds[1]; h.Status.Code != codes.Error || attributeOf(h, "error.type") != "uncertain" || !strings.Contains(h.Status.Description, "not confirmed") {
			s.Errorf("a lease whose release is not confirmed: %v %v", h.Status, h.Attributes)
		}
	})
}

// A lease that is lost as soon as it is granted may end before the wait has: then its span ends when it begins, and nobody is linked to it.
func TestTracer_ALossThatOvertakesTheGrant(t *testing.T) {
	play(t, interlockotel.Options{Store: "main"}, func(s *scene) {
		ctx := s.tracer.WaitStart(s.Context(), interlock.WaitStart{Op: "lock", Name: "m", Kind: driver.Mutex})
		s.tracer.HoldEnd(ctx, interlock.HoldEnd{Name: "m", Kind: driver.Mutex, Reason: interlock.LostGone, Err: interlock.ErrLost})
		s.tracer.WaitEnd(ctx, interlock.WaitEnd{Op: "lock", Name: "m", Kind: driver.Mutex, Fence: 7, Result: interlock.Granted})
		if holds := s.ended("interlock.hold"); len(holds) != 1 || holds[0].Status.Code != codes.Error || attributeOf(holds[0], interlock.AttributeFence) != "7" {
			s.Errorf("holds: %+v", holds)
		}
		s.lock(s.Context(), s.traced, "m").Release()
		if w := s.ended("interlock.wait"); len(w[1].Links) > 0 {
			s.Error("who comes later is linked to the lease that was lost")
		}
	})
}

package web_test

import (
	"bytes"
	"context"
	"iter"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
	"github.com/interlock-go/interlock/web"
)

// faulty is a store whose driver panics.
type faulty struct {
	*memlock.Driver
	panics atomic.Bool
}

func (f *faulty) fail() {
	if f.panics.Load() {
		panic("index out of range of hunter2")
	}
}

func (f *faulty) Traits() driver.Traits {
	f.fail()
	return f.Driver.Traits()
}

func (f *faulty) Lines(ctx context.Context, prefix string) ([]driver.Line, error) {
	f.fail()
	return f.Driver.Lines(ctx, prefix)
}

func (f *faulty) Line(ctx context.Context, name string) (driver.Line, error) {
	f.fail()
	return f.Driver.Line(ctx, name)
}

func (f *faulty) Break(ctx context.Context, name, id string, fence uint64, now bool) error {
	f.panics.Store(true)
	f.fail()
	return nil
}

func (f *faulty) Watch(ctx context.Context, name string) iter.Seq2[driver.Line, error] {
	f.fail()
	return f.Driver.Watch(ctx, name)
}

// A driver that panics is a store that fails: it is told as that, with the place in the log, and
// what was panicked with there alone. The server goes on, and so does the store.
func TestDriverThatPanicsEndsNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := &faulty{Driver: memlock.New()}
		hold(t, client(t, d.Driver, nil), "a")
		claim := claimOf(t, d.Driver, "a")
		log := &bytes.Buffer{}
		h := handler(t, d, web.Options{Authorize: everything, Logger: slog.New(slog.NewTextHandler(log, nil))})
		const says = "has panicked: the log of the server says where"
		one := follow(t, h, "/v1/watch?name=a")
		defer one.stop()
		synctest.Wait()
		has(t, one.newest(t, "line"), `"state":"holds"`)

		d.panics.Store(true)
		for _, path := range []string{"/", "/contention", "/line?name=c", "/stores"} {
			page := body(t, get(t, h, path), http.StatusOK)
			has(t, page, says)
			hasNot(t, page, "hunter2")
		}
		has(t, body(t, get(t, h, "/v1/line?name=a"), http.StatusServiceUnavailable), says)
		has(t, body(t, get(t, h, "/v1/stores"), http.StatusOK), `"health":"fails"`, says)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		has(t, one.newest(t, "gap"), says)

		two := follow(t, h, "/v1/watch?name=b") // by a watch that begins now
		defer two.stop()
		has(t, two.newest(t, "gap"), says)

		d.panics.Store(false)
		time.Sleep(2 * time.Minute) // until the store is examined again
		synctest.Wait()
		has(t, one.newest(t, "line"), `"state":"holds"`)
		has(t, body(t, get(t, h, "/"), http.StatusOK), `data-key="&#34;a&#34;"`)
		hasNot(t, body(t, get(t, h, "/stores"), http.StatusOK), says)

		has(t, body(t, breaks(h, "a", claim, ""), http.StatusGatewayTimeout), says)
		text := log.String()
		has(t, text, `msg="the driver of store \"main\" has panicked" panic="index out of range of hunter2" stack=`, "web_test.(*faulty).Lines",
			"web_test.(*faulty).Watch", "web_test.(*faulty).Traits", "web_test.(*faulty).Break", "outcome=uncertain")
		if strings.Contains(text, "request failed") {
			t.Errorf("the server takes it for its own fault:\n%s", text)
		}
	})
}

package redislock_test

import (
	"fmt"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver/drivertest/wire"
	"github.com/interlock-go/interlock/internal/servertest"
)

// What a request says of a claim: its value is to be set at a free name, or it is named alone, as
// when it leaves.
var (
	taking  = regexp.MustCompile(`il1:([A-Za-z0-9_-]{22})-\{`)
	leaving = regexp.MustCompile(`\$22\r\n([A-Za-z0-9_-]{22})\r\n`)
)

// Many locks are given up at once while the link is stalled. For none does a request that takes it
// follow one that releases it: it would take the lock for nobody. Many are sent together, behind
// one that is given up, and by a connection that has yet to be made.
func TestNoAcquireFollowsItsRelease(t *testing.T) {
	t.Parallel()
	for _, way := range []wire.Direction{wire.Replies, wire.Requests, wire.Both} {
		for _, forgets := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v, scripts forgotten: %v", way, forgets), func(t *testing.T) {
				t.Parallel()
				server := servertest.Redis(t)
				l := newLink(t, server, "", interlock.Options{}, nil)
				names, err := l.use("order", 30)
				if err != nil {
					t.Fatal(err)
				}
				var mu sync.Mutex
				left, taken, late := map[string]bool{}, 0, 0
				l.Filter(wire.Requests, func(frame []byte) bool {
					mu.Lock()
					defer mu.Unlock()
					for _, m := range taking.FindAllSubmatch(frame, -1) {
						taken++
						if left[string(m[1])] {
							late++
						}
					}
					for _, m := range leaving.FindAllSubmatch(frame, -1) {
						left[string(m[1])] = true
					}
					return true
				})
				if forgets {
					server.MustDo(t, "SCRIPT", "FLUSH")
				}
				heal := l.Stall(way)
				defer heal()
				if err := l.cancel(names); err != nil {
					t.Fatal(err)
				}
				rest(200 * time.Millisecond)
				heal()
				counts := func() (int, int) {
					mu.Lock()
					defer mu.Unlock()
					return taken, len(left)
				}
				until(t, "what was sent is released", func() bool { taken, left := counts(); return taken > 0 && left > 0 })
				quiet := time.NewTimer(500 * time.Millisecond)
				defer quiet.Stop()
				<-quiet.C
				mu.Lock()
				defer mu.Unlock()
				if late > 0 {
					t.Errorf("of %d claims %d were asked for after their release", taken, late)
				}
			})
		}
	}
}

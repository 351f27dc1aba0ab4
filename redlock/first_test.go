package redlock_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redlock"
)

// Whoever is first in line looks by itself when what stands in its way is over: another program's lock, or a holder that has died. The
// first leaves, and the next one looks from then on. No session is renewed: what only a renewal finds, nobody finds here. Where the first
// has died nobody can tell the next one, which learns by one renewal that it is first.
func TestWhoIsFirstInLineNowLooks(t *testing.T) {
	t.Parallel()
	all := func(t *testing.T, set []*servertest.Server, words ...string) {
		t.Helper()
		for _, s := range set {
			s.MustDo(t, words...)
		}
	}
	for what, behind := range map[string]struct {
		stands, fades, ends func(t *testing.T, set []*servertest.Server) // fades is before the first leaves, and ends after that
	}{
		"another program": {
			stands: func(t *testing.T, set []*servertest.Server) { t.Helper(); occupy(t, "first", set...) },
			fades:  func(*testing.T, []*servertest.Server) {},
			ends:   func(t *testing.T, set []*servertest.Server) { t.Helper(); all(t, set, "DEL", "first") },
		},
		"a dead holder": {
			stands: func(t *testing.T, set []*servertest.Server) {
				t.Helper()
				s := session(t, open(t, urlOf(addrs(set))+endless), endlessTTL)
				within(t, "an acquire", func(ctx context.Context) error { _, err := acquire(ctx, s, mutex("first", true)); return err })
				everywhere(t, set, "first")
			},
			fades: func(t *testing.T, set []*servertest.Server) { t.Helper(); all(t, set, "PEXPIRE", "first", "500") },
			ends:  func(*testing.T, []*servertest.Server) {},
		},
	} {
		for how, leaves := range map[string]func(t *testing.T, b *leaver){
			"gives up": func(t *testing.T, b *leaver) {
				t.Helper()
				within(t, "a release", func(ctx context.Context) error { _, err := b.Release(ctx, b.claim); return err })
			},
			"is closed": func(t *testing.T, b *leaver) {
				t.Helper()
				within(t, "a close", func(ctx context.Context) error { return b.Close(ctx) })
			},
			"is broken": func(t *testing.T, b *leaver) {
				t.Helper()
				within(t, "a break", func(ctx context.Context) error {
					return b.d.Break(ctx, b.claim.Name, driver.PublicID(b.claim.ID), 0, true)
				})
			},
			"dies": func(t *testing.T, b *leaver) {
				t.Helper()
				var channels []string
				for _, s := range b.set {
					channels = append(channels, strings.Fields(s.MustDo(t, "HGET", "il:{"+b.claim.Name+"}:qclaims:"+b.claim.Name, b.claim.ID))[4])
				}
				b.board.Kill()
				for i, s := range b.set {
					until(t, 30*time.Second, "seen to be gone", func() bool { return strings.HasSuffix(s.MustDo(t, "PUBSUB", "NUMSUB", channels[i]), "\n0") })
				}
				within(t, "a renewal", func(ctx context.Context) error { _, err := b.next.Renew(ctx); return err })
			},
		} {
			t.Run(how+" behind "+what, func(t *testing.T) {
				t.Parallel()
				set := startMasters(t, 3)
				behind.stands(t, set)
				b := &leaver{set: set, claim: mutex("first", true), board: redistest.NewProxies(t)}
				var wired []string
				for _, s := range set {
					wired = append(wired, b.board.To(s.Addr()).Addr())
				}
				b.d = open(t, urlOf(wired)+endless)
				b.Session, b.next = session(t, b.d, endlessTTL), session(t, open(t, urlOf(addrs(set))+endless), endlessTTL)
				next := mutex("first", true)
				stand := func(s driver.Session, c driver.Claim, n string) {
					t.Helper()
					until(t, 30*time.Second, "in line everywhere", func() bool { // also where the subscription is confirmed later
						if g, err := s.Acquire(t.Context(), c); g.Held || err != nil {
							t.Fatalf("behind %s: held %v, %v", what, g.Held, err)
						}
						return !slices.ContainsFunc(set, func(s *servertest.Server) bool { return s.MustDo(t, "ZCARD", "il:{first}:qline:first") != n })
					})
				}
				stand(b, b.claim, "1")
				stand(b.next, next, "2")
				held := waits(t, b.next, next)
				behind.fades(t, set)
				leaves(t, b)
				behind.ends(t, set)
				if err := redistest.Receive(t, 30*time.Second, "who is first in line now is let in", held); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// A leaver is the first in line, in a process of its own.
type leaver struct {
	driver.Session
	d     *redlock.Driver
	set   []*servertest.Server
	board *redistest.Proxies
	claim driver.Claim
	next  driver.Session // of the claim behind it
}

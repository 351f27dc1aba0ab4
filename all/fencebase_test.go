package all

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Every store that draws tokens takes a base by its URL: tokens go up by it wherever they are said, and nothing is lost of what its
// sessions can do. One without tokens says that it takes none.
func TestEveryStoreTakesAFenceBase(t *testing.T) {
	counts := []string{"etcdlock", "zklock", "redissonlock"} // whose tokens do not begin at the clock
	started := uint64(time.Now().Add(-time.Minute).UnixMicro())
	for _, s := range stores {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			plainURL := s.shipped(t)
			if plainURL == "mem:" {
				plainURL = "mem:every-store"
			}
			sep := "?"
			if strings.Contains(plainURL, "?") {
				sep = "&"
			}
			const base = 2_000_000_000_000_000
			plain := opened(t, plainURL)
			based, err := driver.OpenURL(t.Context(), plainURL+sep+"fence_base=2000000000000000")
			if plain.Traits().Fence == driver.NoFence {
				if err == nil || !strings.Contains(err.Error(), "draws no tokens: want none") {
					t.Errorf("a store without tokens: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			closeAtEnd(t, based)
			if based.Traits() != plain.Traits() {
				t.Errorf("traits %+v, without a base %+v", based.Traits(), plain.Traits())
			}
			one, two := session(t, plain), session(t, based)
			for what, has := range map[string]func(driver.Session) bool{
				"Requeuer":  func(s driver.Session) bool { _, ok := s.(driver.Requeuer); return ok },
				"Inheritor": func(s driver.Session) bool { _, ok := s.(driver.Inheritor); return ok },
			} {
				if has(one) != has(two) {
					t.Errorf("a session with a base is a %s: %v, without %v", what, has(two), has(one))
				}
			}

			first, second := hold(t, one), hold(t, two)
			third := hold(t, one)
			if clock := first.Fence > started; clock == slices.Contains(counts, s.name) {
				t.Errorf("the first token is %d; that it is the clock is %v, and docs/fencing.md says otherwise", first.Fence, clock)
			}
			// Of one name, tokens grow from lease to lease, and one of them is with the base.
			if second.Fence <= first.Fence+base || third.Fence <= second.Fence-base {
				t.Errorf("tokens %d, %d with the base, %d", first.Fence, second.Fence, third.Fence)
			}

			c := mutex()
			g, err := two.Acquire(t.Context(), c)
			if err != nil || !g.Held {
				t.Fatalf("%+v, %v", g, err)
			}
			shown, err := based.(driver.Inspector).Line(t.Context(), name)
			if errors.Is(err, errors.ErrUnsupported) {
				return // a row that is locked says nothing of whom
			}
			if err != nil {
				t.Fatal(err)
			}
			raw, err := plain.(driver.Inspector).Line(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			if shown.Fence != raw.Fence && shown.Fence != raw.Fence+base || len(shown.Claims) != 1 || len(raw.Claims) != 1 {
				t.Fatalf("shown %+v, without a base %+v", shown, raw)
			}
			if h := shown.Claims[0]; raw.Claims[0].Fence != 0 && (h.Fence != g.Fence || raw.Claims[0].Fence != g.Fence-base) {
				t.Errorf("token %d is shown as %d, without a base as %d", g.Fence, h.Fence, raw.Claims[0].Fence)
			}
			if raw.Claims[0].Fence != 0 { // what the server does not show, nobody can name
				if err := based.(driver.Inspector).Break(t.Context(), name, shown.Claims[0].PublicID, raw.Claims[0].Fence, true); !errors.Is(err, driver.ErrRefused) {
					t.Errorf("broken by the store's own token: %v, want it refused", err)
				}
			}
			if err := based.(driver.Inspector).Break(t.Context(), name, shown.Claims[0].PublicID, shown.Claims[0].Fence, true); err != nil {
				t.Errorf("broken as it is shown: %v", err)
			}
		})
	}
}

const name = "every-store"

func mutex() driver.Claim {
	return driver.Claim{Name: name, ID: driver.NewID(), Kind: driver.Mutex, Weight: driver.All, Limit: driver.All, Queue: true}
}

func opened(t *testing.T, url string) driver.Driver {
	t.Helper()
	d, err := driver.OpenURL(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, d)
	return d
}

func closeAtEnd(t *testing.T, d driver.Driver) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		_ = d.Close(ctx)
	})
}

func session(t *testing.T, d driver.Driver) driver.Session {
	t.Helper()
	s, err := d.Open(t.Context(), driver.Spec{ID: driver.NewID(), TTL: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// hold takes the name and lets it go again.
func hold(t *testing.T, s driver.Session) driver.Grant {
	t.Helper()
	c := mutex()
	g, err := s.Acquire(t.Context(), c)
	for end := time.Now().Add(30 * time.Second); err == nil && !g.Held && time.Now().Before(end); {
		ctx, cancel := context.WithDeadline(t.Context(), end)
		g, err = s.Wait(ctx, c)
		cancel()
	}
	if err != nil || !g.Held {
		t.Fatalf("%+v, %v", g, err)
	}
	if held, err := s.Release(t.Context(), c); err != nil || !held {
		t.Fatalf("release: held %v, %v", held, err)
	}
	return g
}

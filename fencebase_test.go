package interlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

// Every token that a client hands out or shows is that of the store and the base.
func TestFenceBase_IsInEveryToken(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const base = 1 << 51
		store := memlock.New()
		c, other := newClient(t, store, &interlock.Options{FenceBase: base}), newClient(t, store.Share(), nil)
		lease := lock(t.Context(), t, c.Mutex("m"))
		l := must[driver.Line](t)(store.Line(t.Context(), "m"))
		if lease.Fence() != l.Claims[0].Fence+base || interlock.Fence(lease.Context(), "m") != lease.Fence() {
			t.Errorf("token %d, in the store %d", lease.Fence(), l.Claims[0].Fence)
		}
		var held *interlock.HeldError
		if _, err := c.Mutex("m").TryLock(t.Context()); !errors.As(err, &held) || held.Holder.Fence != lease.Fence() {
			t.Errorf("who tries is told of %+v", held.Holder)
		}
		release(t, lease)
		lease = lock(t.Context(), t, other.Mutex("m"))
		if _, err := c.Mutex("m").TryLock(t.Context()); !errors.As(err, &held) || held.Holder.Fence != lease.Fence()+base {
			t.Errorf("who tries is told of %+v, held elsewhere with %d", held.Holder, lease.Fence())
		}
		release(t, lease)

		err := c.Election("boss").Lead(t.Context(), func(ctx context.Context) error {
			token := interlock.Fence(ctx, "boss")
			if leader, err := c.Election("boss").Leader(ctx); err != nil || token <= base || leader.Fence != token {
				t.Errorf("leads with %d, shown as %+v, %v", token, leader, err)
			}
			for leader, err := range c.Election("boss").Observe(ctx) {
				if err != nil || leader.Fence != token {
					t.Errorf("leads with %d, observed as %+v, %v", token, leader, err)
				}
				break
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestFenceBase_ThatCannotBe(t *testing.T) {
	for _, c := range []struct {
		url  string
		base uint64
		says string
	}{
		{"mem:", 1<<52 + 1, "interlock: Options.FenceBase: driver: fence base 4503599627370497: want at most 4503599627370496"},
		{"mem:?fence_base=5", 6, "fence base 6 on a store that is opened with one of 5: want it given once"},
		{"mem:?fence_base=x", 0, `"x": want a number`},
	} {
		if _, err := interlock.Open(t.Context(), c.url, &interlock.Options{FenceBase: c.base}); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s and %d: %v, want %q", c.url, c.base, err, c.says)
		}
	}
	if _, err := interlock.New(memlock.NewPersonality(memlock.Personality{NoFence: true}), &interlock.Options{FenceBase: 1}); err == nil || !strings.Contains(err.Error(), "draws no tokens") {
		t.Errorf("a store without tokens: %v", err)
	}
}

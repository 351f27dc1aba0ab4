package cli

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/guard"
)

// deadlock returns an error if the wait for the lock would never end: a run around this one holds
// it and ends only after this one.
//
// INTERLOCK_HELD tells what the runs around this one hold. It may be old: what at(1) or a daemon
// has kept of it outlives the lease, and another store may have the same name. So the store is
// asked whether that lease stands there, with that token, and the system whether its holder is
// above this process. Then the rule decides, as the store would:
//
//	held around this one   wanted     who waits for whom
//	exclusively            any        this one for that one
//	shared                 exclusive  this one for that one
//	shared                 shared     this one for a writer that waits for that one, where the
//	                                  store keeps order
//	permits                permit     this one for that one, if it has all permits
//
// A writer that begins to wait after the store was asked makes a deadlock of the third kind that is
// not seen here.
func deadlock(ctx context.Context, d driver.Driver, w wanted) error {
	around := slices.DeleteFunc(leasesAround(), func(a aroundLease) bool { return a.name != w.name })
	i, ok := d.(driver.Inspector)
	if len(around) == 0 || !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, tryPatience)
	defer cancel()
	l, err := i.Line(ctx, w.name)
	if err != nil {
		return nil // the request for the lock says what is wrong with the store
	}
	var exclusive, shared, writerWaits bool
	permits := 0
	for _, h := range l.Claims {
		switch own := h.Held && slices.ContainsFunc(around, func(a aroundLease) bool { return a.is(h, bareStore(w.store)) }); {
		case !h.Held:
			writerWaits = writerWaits || h.Kind.Exclusive()
		case !own:
		case h.Kind.Exclusive():
			exclusive = true
		case h.Kind == driver.Read:
			shared = true
		case h.Kind == driver.Permit:
			permits += h.Weight
		}
	}
	var stuck bool
	switch {
	case w.kind.Exclusive():
		stuck = exclusive || shared
	case w.kind == driver.Read:
		stuck = exclusive || shared && writerWaits && d.Traits().Ordered
	case w.kind == driver.Permit:
		stuck = permits >= w.limit
	}
	if !stuck {
		return nil
	}
	return usage("%q is held by the run around this one (INTERLOCK_HELD names it), which would wait for this one, and this one for it", w.name)
}

// is reports whether h is this lease, of a run that this process descends from. Where the store
// does not say whose process it is, or names one of another machine, which may have sent us here by
// ssh, the store's name decides.
func (a aroundLease) is(h driver.Holder, store string) bool {
	switch {
	case a.fence != h.Fence || h.Foreign:
		return false
	case h.Owner.PID != 0 && sameMachine(h.Owner):
		return guard.Descends(h.Owner.PID)
	}
	return a.store == store
}

// sameMachine reports whether an owner's process is, or was, of this machine since it started.
func sameMachine(o driver.Owner) bool {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		host, _ := os.Hostname()
		return o.Boot == "" && o.Host == host
	}
	return o.Boot == strings.TrimSpace(string(boot))
}

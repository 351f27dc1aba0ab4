package drivertest

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/driver"
)

var watchLaw = Law{
	Name: "Also_Watch",
	Says: "Watch yields the line as it is and then after changes: every state that lasts is seen in the end, and the sequence ends " +
		"when its reader stops or its context ends.",
	try: tryWatch,
}

// watchedTurns is how often a watched name is locked and released once more.
const watchedTurns = 16

func tryWatch(w *world) {
	p := w.process("viewer")
	d, ok := p.d.(driver.Watcher)
	if !ok {
		w.without("what is told of a line that changes", "it is no driver.Watcher")
		return
	}
	w.eachKind(func(w *world, k kind) { tryWatchOf(w, d, k) })
}

func tryWatchOf(w *world, d driver.Watcher, k kind) {
	a, b := w.actor("A"), w.actor("B")
	name := w.name("watch-" + k.String())
	look, _ := d.(driver.Inspector) // may be nil
	mine := a.held(k.own(name))
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	v := follow(ctx, w, d, name)
	v.sees(k, "the holder", leads(1, mine))
	next := b.queue(k.rival(name))
	v.sees(k, "a waiter behind the holder", leads(2, mine))
	if look != nil {
		if l, err := lookAt(w, look, name); err == nil {
			v.sees(k, "what Line shows of a waiter behind a holder", func(shown driver.Line) bool { return alike(shown, l) })
		}
	}
	a.letGo(mine)
	v.sees(k, "the waiter as the holder", leads(1, next))
	b.await(next, patience)
	b.letGo(next)
	for range watchedTurns { // a watch does not end after so many changes
		a.letGo(a.held(k.own(name)))
		w.sleep(time.Millisecond)
	}
	if look != nil {
		marked := k.own(name)
		g := a.hold(marked)
		v.sees(k, "the next holder", leads(1, marked))
		br := &breaker{w: w, look: look}
		if err := br.try(name, driver.PublicID(marked.ID), g.Fence, false); err == nil {
			v.sees(k, "that the holder is marked", func(l driver.Line) bool { return leads(1, marked)(l) && l.Claims[0].Broken })
		} else if !errors.Is(err, errors.ErrUnsupported) {
			w.fail("Break of %s, which stands as named, failed: %v", w.trace.claim(marked), err)
		}
		a.release(marked)
	}
	v.sees(k, "an empty line", func(l driver.Line) bool { return len(l.Claims) == 0 })
	cancel()
	v.ends()
	_, err := ask(w.ctx, w.trial, "viewer", func(ctx context.Context) (struct{}, error) {
		for _, err := range d.Watch(ctx, name) { // a reader may stop at any time
			return struct{}{}, err
		}
		return struct{}{}, nil
	}, nil)
	if err != nil {
		w.fail("a watch of %s began with %v although nothing was wrong", w.trace.name(name), err)
	}
}

// leads reports of a line whether n claims stand in it and c, the first, is held.
func leads(n int, c driver.Claim) func(driver.Line) bool {
	return func(l driver.Line) bool {
		return len(l.Claims) == n && l.Claims[0].Held && l.Claims[0].PublicID == driver.PublicID(c.ID)
	}
}

// watch is a Watch of one name that is under way.
type watch struct {
	w     *world
	name  string
	seen  chan driver.Line
	ended chan error
	shown *driver.Line // last
}

// follow starts a watch. It goes on beside the trial's tasks: a watch that does not end must not
// hold up the trial.
func follow(ctx context.Context, w *world, d driver.Watcher, name string) *watch {
	v := &watch{w: w, name: name, seen: make(chan driver.Line, 4*watchedTurns), ended: make(chan error, 1)}
	go func() {
		var last error
		for l, err := range d.Watch(ctx, name) {
			if last = err; err != nil {
				continue
			}
			w.trace.add(time.Now(), "viewer", "sees %d claims in line", len(l.Claims))
			select {
			case v.seen <- l:
			case <-w.ctx.Done():
			}
		}
		v.ended <- last
	}()
	return v
}

// sees insists that the watch shows a line for which state answers true.
func (v *watch) sees(k kind, what string, state func(driver.Line) bool) {
	w := v.w
	deadline := time.After(w.atOnce())
	for v.shown == nil || !state(*v.shown) {
		select {
		case l := <-v.seen:
			if l.Name != v.name {
				w.fail("the watch of %s yields the line of %s", w.trace.name(v.name), w.trace.name(l.Name))
			}
			v.shown = &l
		case err := <-v.ended:
			w.fail("the watch ended with %v before it showed %s", err, what)
		case <-deadline:
			w.fail("the watch of a %s did not show %s within %v", k, what, w.atOnce())
		}
	}
}

// ends insists that the watch, whose context was cancelled, ends.
func (v *watch) ends() {
	for deadline := time.After(promptly); ; {
		select {
		case <-v.seen: // what was under way
			continue
		case err := <-v.ended:
			if err != nil && !errors.Is(err, context.Canceled) {
				v.w.fail("the watch ended with %v after its context was cancelled", err)
			}
		case <-deadline:
			v.w.fail("the watch goes on %v after its context was cancelled", promptly)
		}
		return
	}
}

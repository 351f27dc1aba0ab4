package redissonlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redisstore"
	"github.com/interlock-go/interlock/redisconn"
)

// sight is a line as the script look saw it, with what people must not see.
type sight struct {
	driver.Line
	fields []string // beside Claims
}

// Line implements driver.Inspector. It shows the holders in the hash, with what our notes have of
// them, and the waiters that are ours or in the line of a fair lock.
func (d *Driver) Line(ctx context.Context, name string) (driver.Line, error) {
	if err := redisstore.CheckName("redissonlock", name); err != nil {
		return driver.Line{Name: name}, err
	}
	s, err := d.look(ctx, name)
	return s.Line, err
}

func (d *Driver) lookCall(name string) redisconn.Call {
	k := keysOf(name, d.store.Cluster)
	return redisconn.Call{Script: lookScript, Keys: []string{k.name, k.counter, k.line, k.places, k.notes}, Args: []string{k.own}, Again: redisconn.Idempotent}
}

func (d *Driver) look(ctx context.Context, name string) (s sight, err error) {
	s.Name = name
	err = d.each(ctx, []string{name}, func(seen sight) { s = seen })
	return s, err
}

// each looks at names.
func (d *Driver) each(ctx context.Context, names []string, saw func(sight)) error {
	err := redisstore.Each(ctx, d.store.Run, d.store.Timeout, names, d.lookCall, func(name string, v any) error {
		s, err := parseSight(name, v)
		if err == nil {
			saw(s)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("redissonlock: %w", err)
	}
	return nil
}

// Lines implements driver.Inspector. It goes through all keys that begin with prefix, so its cost
// grows with the store. Where a master of a Cluster cannot be reached it lists what stands at the
// others, with an error that says so.
func (d *Driver) Lines(ctx context.Context, prefix string) ([]driver.Line, error) {
	legal := func(key string) string {
		if strings.HasPrefix(key, redisstore.SideKeys) {
			return ""
		}
		return key
	}
	names, missing := redisstore.Names(ctx, d.store.Conn, redisstore.Glob("", prefix), prefix, legal, "TYPE", "hash")
	if missing != nil {
		missing = fmt.Errorf("redissonlock: %w", missing)
	}
	var lines []driver.Line
	err := d.each(ctx, names, func(s sight) {
		if s.isLock() {
			lines = append(lines, s.Line)
		}
	})
	return lines, errors.Join(missing, err)
}

// isLock reports whether the key is a lock, and not other data.
func (s sight) isLock() bool {
	for i, h := range s.Claims {
		if h.Foreign && h.Held && thread.FindString(s.fields[i]) == "" {
			return false
		}
	}
	return len(s.Claims) > 0
}

func parseSight(name string, v any) (sight, error) {
	s := sight{Line: driver.Line{Name: name}}
	f, _ := v.([]any)
	if len(f) < 5 || len(f)%5 != 0 {
		return s, errors.New("the server answered something else than a line")
	}
	kind, _ := f[0].(string)
	counter, _ := f[2].(string)
	ms, _ := f[3].(int64)
	mode, _ := f[4].(string)
	now := time.UnixMilli(ms)
	s.Fence, _ = strconv.ParseUint(counter, 10, 63)
	if kind != "hash" && kind != "none" {
		h := foreign("\x00"+kind, "", "")
		h.Note = "a " + kind + ", not a hash of Redisson: somebody's data, or a lock in another layout"
		s.add(h, "")
	}
	var waiters sight
	for i := 5; i < len(f); i += 5 {
		text := func(j int) string { t, _ := f[i+j].(string); return t }
		n, noted := parseNote(text(4))
		switch field := text(1); text(0) {
		case "h":
			left, _ := f[i+3].(int64)
			h := foreign(field, mode, text(2))
			if noted {
				h = n.holder()
				h.Held = true
			}
			switch {
			case left == -2 && noted:
				continue // a reader whose time is over
			case left < 0:
				h.Note = strings.TrimPrefix(h.Note+"; without an expiry time", "; ")
			default:
				h.Until = now.Add(time.Duration(left) * time.Millisecond)
			}
			s.add(h, field)
		case "w":
			if noted && n.stop.After(now) {
				h := n.holder()
				h.Fence = 0
				waiters.add(h, field)
			}
		case "f":
			till, err := strconv.ParseFloat(text(3), 64)
			if err != nil || int64(till) <= ms {
				continue // no claim waits for it
			}
			h := foreign(field, "", "")
			h.Held, h.Until = false, time.UnixMilli(int64(till))
			h.Note += "; in the line of a fair lock"
			waiters.add(h, field)
		}
	}
	s.Claims, s.fields = append(s.Claims, waiters.Claims...), append(s.fields, waiters.fields...)
	return s, nil
}

func (s *sight) add(h driver.Holder, field string) {
	s.Claims, s.fields = append(s.Claims, h), append(s.fields, field)
}

// Break implements driver.Inspector. Redisson's layout has no place for a mark, so a claim of ours
// is marked in our notes, and a message is published to its process, which is subscribed half a
// second after its first grant at the latest. A client of Redisson reads no marks.
func (d *Driver) Break(ctx context.Context, name, publicID string, fence uint64, now bool) error {
	if err := redisstore.CheckName("redissonlock", name); err != nil {
		return err
	}
	s, err := d.look(ctx, name)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(s.Claims, func(h driver.Holder) bool { return h.PublicID == publicID && h.Fence == fence })
	if i < 0 || s.fields[i] == "" {
		return fmt.Errorf("redissonlock: break %q: %w: no claim %s with token %d stands there", name, driver.ErrRefused, publicID, fence)
	}
	k, h, field := keysOf(name, d.store.Cluster), s.Claims[i], s.fields[i]
	switch {
	case h.Foreign && !h.Held:
		return fmt.Errorf("redissonlock: break %q: %w: a fair lock's waiter leaves by itself when its time is over", name, driver.ErrRefused)
	case h.Foreign && thread.FindString(field) == "":
		return fmt.Errorf("redissonlock: break %q: %w: that is no lock", name, driver.ErrRefused)
	case h.Foreign && !now:
		return fmt.Errorf("redissonlock: break %q: %w: a client of Redisson holds it and reads no marks", name, driver.ErrOnlyNow)
	}
	call := d.releaseCall(k, field, h.Kind, "")
	if !h.Held || !now {
		call = redisconn.Call{Script: markScript, Keys: []string{k.name, k.notes}, Args: []string{field, d.publish, k.channel(h.Kind)}}
	}
	var again redisstore.Resent
	if !h.Foreign { // a thread of Redisson locks again under the same field
		call.Again = again.Again
	}
	replies, err := redisstore.Together(ctx, d.store.Run, d.store.Timeout, []redisconn.Call{call})
	if err == nil {
		err = replies[0].Err
	}
	if err != nil {
		return fmt.Errorf("redissonlock: break %q: %w", name, err)
	}
	if replies[0].Value != int64(1) && !h.Broken {
		if again { // perhaps it was broken by that
			return fmt.Errorf("redissonlock: break %q: %w", name, redisstore.ErrTwice)
		}
		return fmt.Errorf("redissonlock: break %q: %w: the claim has just left", name, driver.ErrRefused)
	}
	if !h.Foreign {
		d.publishBroken(ctx, field)
	}
	return nil
}

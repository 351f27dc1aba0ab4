package mysqllock

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// look returns lines, without the claims of expired sessions.
func (d *Driver) look(ctx context.Context, prefix string, alone bool) (lines []driver.Line, err error) {
	ctx, cancel := context.WithTimeout(ctx, d.options.Timeout)
	defer cancel()
	a, err := d.send(ctx, fmt.Sprintf("call %sshow(x'%x', %t)", d.options.Prefix, prefix, alone), "")
	if err != nil {
		return nil, err
	}
	type session struct {
		until int64
		owner []byte
	}
	valid := map[string]session{}
	for _, f := range a.rows {
		if len(f) == 4 {
			valid[string(f[0])] = session{integer(f[1]), f[2]}
		}
	}
	for _, f := range a.rows {
		if len(f) != 3 {
			continue
		}
		l := driver.Line{Name: string(f[0]), Fence: uint64(integer(f[1]))} //nolint:gosec // never negative
		for c := range strings.Lines(string(f[2])) {
			_, whose, _ := strings.Cut(c, " ")
			s, lives := valid[whose[:min(len(whose), 22)]]
			if !lives {
				continue
			}
			h, err := holder(c, s.owner, s.until)
			if err != nil {
				return lines, fmt.Errorf("a line that cannot be read, of %q: %w", l.Name, err)
			}
			l.Claims = append(l.Claims, h)
		}
		if alone || len(l.Claims) > 0 {
			lines = append(lines, l)
		}
	}
	return lines, nil
}

// Lines implements driver.Inspector.
func (d *Driver) Lines(ctx context.Context, prefix string) ([]driver.Line, error) {
	lines, err := d.look(ctx, prefix, false)
	if err != nil {
		err = fmt.Errorf("mysqllock: list: %w", err)
	}
	return lines, err
}

// Line implements driver.Inspector.
func (d *Driver) Line(ctx context.Context, name string) (driver.Line, error) {
	lines, err := d.look(ctx, name, true)
	switch {
	case err != nil:
		return driver.Line{Name: name}, fmt.Errorf("mysqllock: look at %q: %w", name, err)
	case len(lines) == 0:
		return driver.Line{Name: name}, nil
	}
	return lines[0], nil
}

// Break implements driver.Inspector. The owner of a claim that holds learns of it by its next
// renewal.
func (d *Driver) Break(ctx context.Context, name, publicID string, fence uint64, now bool) error {
	ctx, cancel := context.WithTimeout(ctx, d.options.Timeout)
	defer cancel()
	hit, _, err := d.call(ctx, "break(x'%x', x'%x', %d, %t)", name, publicID, fence, now)
	if err != nil {
		return fmt.Errorf("mysqllock: break %q: %w", name, err)
	}
	if hit != "t" {
		return fmt.Errorf("mysqllock: break %q: %w: no claim %s with token %d stands there", name, driver.ErrRefused, publicID, fence)
	}
	d.wake(ctx, name)
	return nil
}

// wake ends the waits behind gates for a name, since the gate of a claim stays locked until its
// process knows that the claim was broken. A wait that is seen here may have read the line before
// the break; one that is not seen reads it after that. If the user may not wake it, it reads the
// line within a second.
func (d *Driver) wake(ctx context.Context, name string) {
	a, err := d.send(ctx, fmt.Sprintf("select id from information_schema.processlist where info like 'call %slook(x''%x''%%' and info not like '%%null)'", d.options.Prefix, name), "")
	for _, f := range a.rows {
		if err == nil {
			_, err = d.send(ctx, "kill query "+string(f[0]), "")
		}
	}
	if err != nil {
		go d.options.Logger.Warn("mysqllock: who waits for the claim that was broken is not told at once", "error", err)
	}
}

// watchPeriod is how often Watch reads the lines.
const watchPeriod = 100 * time.Millisecond

// Watch implements driver.Watcher: it reads the lines ten times a second and yields what has
// changed.
func (d *Driver) Watch(ctx context.Context, name string) iter.Seq2[driver.Line, error] {
	return driver.PollLine(ctx, watchPeriod, func(ctx context.Context) (driver.Line, error) { return d.Line(ctx, name) })
}

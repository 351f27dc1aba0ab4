package pglock

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// stands is a claim as the server shows it: a backend that has an advisory lock or waits for it.
type stands struct {
	driver.Holder
	pid  string
	also int64 // how many other locks it has
}

// stands reads who has a name, and who waits for it in the order in which they came. Of what program they are nobody knows: ours call
// themselves interlock, and a lock of one that is not is foreign. A backend's public id is made of its number and its beginning.
func (d *connDriver) stands(ctx context.Context, name string) (all []stands, err error) {
	k, err := d.key(name)
	if err == nil && d.rows {
		err = fmt.Errorf("who has locked a row stands in the row alone: %w", errors.ErrUnsupported)
	}
	if err != nil {
		return nil, err
	}
	rows, err := d.look(ctx, "select l.pid, coalesce(extract(epoch from a.backend_start), 0), l.mode, l.granted, coalesce(extract(epoch from l.waitstart) * 1000000, 0)::bigint, "+
		"coalesce(a.application_name, ''), coalesce(a.usename, ''), coalesce(host(a.client_addr), ''), "+
		"(select count(*) from pg_locks o where o.pid = l.pid and o.locktype = 'advisory' and (o.classid, o.objid, o.objsubid) <> (l.classid, l.objid, l.objsubid)) "+
		"from pg_locks l left join pg_stat_activity a using (pid) where "+k.locks()+" order by not l.granted, l.waitstart, l.pid")
	if err != nil {
		return nil, err
	}
	for _, f := range rows {
		owner, ours := strings.CutPrefix(string(f[5]), "interlock")
		h := driver.Holder{
			PublicID: driver.PublicID(string(f[0]) + " " + string(f[1])), Kind: driver.Mutex, Weight: driver.All, Limit: driver.All, Held: string(f[3]) == "t",
			Owner: driver.Owner{Name: strings.TrimSpace(owner), User: string(f[6]), Host: string(f[7])}, Foreign: !ours,
		}
		if string(f[2]) == "ShareLock" {
			h.Kind, h.Weight = driver.Read, 1
		}
		if us := number(f[4]); us > 0 && !h.Held {
			h.Since = time.UnixMicro(us)
		}
		all = append(all, stands{h, string(f[0]), number(f[8])})
	}
	return all, nil
}

// Line implements driver.Inspector.
func (d *connDriver) Line(ctx context.Context, name string) (driver.Line, error) {
	l := driver.Line{Name: name}
	all, err := d.stands(ctx, name)
	if err != nil {
		return l, fmt.Errorf("pglock: look at %q: %w", name, err)
	}
	for _, at := range all {
		l.Claims = append(l.Claims, at.Holder)
	}
	return l, nil
}

// Lines implements driver.Inspector: the server has keys, and no names.
func (d *connDriver) Lines(context.Context, string) ([]driver.Line, error) {
	return nil, fmt.Errorf("pglock: list: technique %s keeps no names: ask for one: %w", d.options.Technique, errors.ErrUnsupported)
}

// Break implements driver.Inspector: it ends the backend, where that has nothing else. Its owner is told by that.
func (d *connDriver) Break(ctx context.Context, name, publicID string, fence uint64, now bool) error {
	all, err := d.stands(ctx, name)
	if err == nil {
		err = fmt.Errorf("%w: no claim %s with token %d stands there", driver.ErrRefused, publicID, fence)
	}
	for _, at := range all {
		switch {
		case at.PublicID != publicID || fence != 0:
		case at.Held && !now:
			err = fmt.Errorf("an advisory lock cannot be marked, and its owner not be asked: it can only be broken now: %w", errors.ErrUnsupported)
		case at.also > 0:
			err = fmt.Errorf("the backend %s has %d other locks, which would go with this one: %w", at.pid, at.also, errors.ErrUnsupported)
		default:
			var rows [][][]byte
			if rows, err = d.look(ctx, "select pg_terminate_backend("+at.pid+", 5000)"); err == nil && string(rows[0][0]) != "t" {
				err = fmt.Errorf("the backend %s does not end", at.pid)
			} else if code(err) == "42501" {
				err = fmt.Errorf("%w: the backend %s is another role's: to end it takes a member of that role or of pg_signal_backend", driver.ErrRefused, at.pid)
			}
		}
	}
	if err != nil {
		return fmt.Errorf("pglock: break %q: %w", name, err)
	}
	return nil
}

// Watch implements driver.Watcher.
func (d *connDriver) Watch(ctx context.Context, name string) iter.Seq2[driver.Line, error] {
	return driver.PollLine(ctx, watchPeriod, func(ctx context.Context) (driver.Line, error) { return d.Line(ctx, name) })
}

// locks is the condition of the key's rows in pg_locks.
func (k key) locks() string {
	form := 1
	if k.pair {
		form = 2
	}
	return fmt.Sprintf("l.locktype = 'advisory' and l.database = (select oid from pg_database where datname = current_database()) "+
		"and l.classid = '%d' and l.objid = '%d' and l.objsubid = %d", k.bits>>32, uint32(k.bits), form) //nolint:gosec // the lower half
}

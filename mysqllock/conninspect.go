package mysqllock

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// stands is a claim as the server shows it: a connection that has a named lock or waits for it.
type stands struct {
	driver.Holder
	id string // of the connection
}

// stands reads who has a name, and who waits for it in the order in which they came, as far as what their statements say is shown. A connection's public id is made
// of its number and its end below.
func (d *connDriver) stands(ctx context.Context, name string) (all []stands, err error) {
	key, err := d.key(d, name)
	if err == nil && d.rows {
		err = fmt.Errorf("the server shows to few who has locked a row: %w", errors.ErrUnsupported)
	}
	if err != nil {
		return nil, err
	}
	a, err := d.send(ctx, fmt.Sprintf("select id, user, host, id <=> h.held, time, is_used_lock(concat('interlock@', id)) <=> id from information_schema.processlist, (select is_used_lock('%s') held) h where id <=> h.held or state = 'User lock' and instr(info, '''%[1]s''') > 0 order by 4 desc, time desc, id", key), "")
	if err != nil {
		return nil, err
	}
	for _, f := range a.rows {
		host, _, _ := strings.Cut(string(f[2]), ":")
		h := driver.Holder{
			PublicID: driver.PublicID(string(f[0]) + " " + string(f[2])), Kind: driver.Mutex, Weight: driver.All, Limit: driver.All, Held: string(f[3]) == "1",
			Owner: driver.Owner{User: string(f[1]), Host: host}, Foreign: string(f[5]) != "1",
		}
		if !h.Held {
			h.Since = time.Now().Add(-time.Duration(integer(f[4])) * time.Second).Truncate(time.Second)
		}
		all = append(all, stands{h, string(f[0])})
	}
	return all, nil
}

// Line implements driver.Inspector.
func (d *connDriver) Line(ctx context.Context, name string) (driver.Line, error) {
	l := driver.Line{Name: name}
	all, err := d.stands(ctx, name)
	if err != nil {
		return l, fmt.Errorf("mysqllock: look at %q: %w", name, err)
	}
	for _, at := range all {
		l.Claims = append(l.Claims, at.Holder)
	}
	return l, nil
}

// Lines implements driver.Inspector: the server shows no keys.
func (d *connDriver) Lines(context.Context, string) ([]driver.Line, error) {
	return nil, fmt.Errorf("mysqllock: list: technique %s keeps no names: ask for one: %w", d.options.Technique, errors.ErrUnsupported)
}

// Break implements driver.Inspector: it ends the connection, and all its locks with it. Their owners are told by that.
func (d *connDriver) Break(ctx context.Context, name, publicID string, fence uint64, now bool) error {
	all, err := d.stands(ctx, name)
	if err == nil {
		err = fmt.Errorf("%w: no claim %s with token %d stands there", driver.ErrRefused, publicID, fence)
	}
	for _, at := range all {
		switch {
		case at.PublicID != publicID || fence != 0:
		case at.Held && !now:
			err = fmt.Errorf("a named lock cannot be marked, and its owner not be asked: it can only be broken now: %w", errors.ErrUnsupported)
		default:
			if _, err = results(ctx, d.db, fmt.Sprintf("kill %s", at.id)); code(err) == notOwner {
				err = fmt.Errorf("%w: the connection %s is another user's: to end it takes CONNECTION ADMIN, or CONNECTION_ADMIN on MySQL", driver.ErrRefused, at.id)
			}
		}
	}
	if err != nil {
		return fmt.Errorf("mysqllock: break %q: %w", name, err)
	}
	return nil
}

// Watch implements driver.Watcher.
func (d *connDriver) Watch(ctx context.Context, name string) iter.Seq2[driver.Line, error] {
	return driver.PollLine(ctx, watchPeriod, func(ctx context.Context) (driver.Line, error) { return d.Line(ctx, name) })
}

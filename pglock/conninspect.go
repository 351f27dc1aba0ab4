package pglock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/connlock"
)

// Stands implements connlock.Store. It cannot know the programs: ours call themselves
// interlock, and a lock of one that is not is foreign. A backend's public id is made of its number
// and its beginning.
func (d *connDriver) Stands(ctx context.Context, name string) (all []connlock.Standing, err error) {
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
		all = append(all, connlock.Standing{Holder: h, Conn: string(f[0]), Also: number(f[8])})
	}
	return all, nil
}

// End implements connlock.Store.
func (d *connDriver) End(ctx context.Context, pid string) error {
	rows, err := d.look(ctx, "select pg_terminate_backend("+pid+", 5000)")
	switch {
	case code(err) == "42501":
		return fmt.Errorf("%w: the backend %s is another role's: to end it takes a member of that role or of pg_signal_backend", driver.ErrRefused, pid)
	case err == nil && string(rows[0][0]) != "t":
		return fmt.Errorf("the backend %s does not end", pid)
	}
	return err
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

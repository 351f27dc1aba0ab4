package mysqllock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/connlock"
)

// Stands implements connlock.Store. A waiter is shown if its statement says what it waits for. A
// connection's public id is made of its number and its end below.
func (d *connDriver) Stands(ctx context.Context, name string) (all []connlock.Standing, err error) {
	key, err := d.key(d.place, name)
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
		all = append(all, connlock.Standing{Holder: h, Conn: string(f[0])})
	}
	return all, nil
}

// End implements connlock.Store. All other locks of the connection go with it, which the server
// does not show.
func (d *connDriver) End(ctx context.Context, id string) error {
	_, err := results(ctx, d.db, fmt.Sprintf("kill %s", id))
	if code(err) == notOwner {
		return fmt.Errorf("%w: the connection %s is another user's: to end it takes CONNECTION ADMIN, or CONNECTION_ADMIN on MySQL", driver.ErrRefused, id)
	}
	return err
}

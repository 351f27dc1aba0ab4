package mysqllock

import (
	"fmt"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/connlock"
)

// forever is how long a statement waits for a lock, in seconds.
const forever = 31_536_000

// get takes a lock, waits so many seconds for it, and draws its token. The answer is the token, or -1.
func (d *connDriver) get(l connlock.Lock, patience int) connlock.Query {
	if d.rows {
		return d.row(l, patience > 0)
	}
	return connlock.Query{SQL: fmt.Sprintf("call %sget('%s', %d)", d.options.Prefix, l.Key, patience)}
}

// try is get where nothing waits. Then a statement may use the sequence: one that waits would keep it from a FLUSH TABLES for as long.
func (d *connDriver) try(l connlock.Lock) connlock.Query {
	if d.sequence && !d.rows {
		return connlock.Query{SQL: fmt.Sprintf("select case when get_lock('%s', 0) = 1 then nextval(%stoken) else -1 end", l.Key, d.options.Prefix)}
	}
	return d.get(l, 0)
}

// leave gives a lock back. The answer is 1 if there was one.
func (d *connDriver) leave(l connlock.Lock) connlock.Query {
	if d.rows {
		return connlock.Query{SQL: "rollback"}
	}
	return connlock.Query{SQL: fmt.Sprintf("select release_lock('%s')", l.Key)}
}

// waits counts a connection if it stands in the line of a lock.
func waits(id string) connlock.Query {
	return connlock.Query{SQL: fmt.Sprintf("select count(*) from information_schema.processlist where id = %s and state = 'User lock'", id)}
}

// hand gives a lock back if another connection waits for it. The answer is -1 if that does not, else whether there was a lock; and whether the
// other one has it now: the server lets the next one in before it goes on.
func hand(l connlock.Lock, other string) connlock.Query {
	return connlock.Query{SQL: fmt.Sprintf("select concat_ws(' ', case when (%s) > 0 then ifnull(release_lock('%s'), 0) else -1 end, ifnull(is_used_lock('%[2]s') = %[3]s, 0))",
		waits(other).SQL, l.Key, other)}
}

// own begins the name of a lock that a connection has as long as it lives. The rest nobody else knows: the number of a connection comes again after
// a restart, and then is a stranger's. Besides it has the lock interlock@ and its number, which tells that it is ours.
const own = "interlock-"

// KeyOf implements connlock.Store.
func (d *connDriver) KeyOf(c driver.Claim) (string, error) {
	switch {
	case c.Kind != driver.Mutex:
		return "", fmt.Errorf("%w: technique %s has mutexes only: use technique rows", driver.ErrRefused, d.options.Technique)
	case c.Name == "" || len(c.Name) > maxName:
		return "", fmt.Errorf("%w: want 1 to %d bytes", driver.ErrName, maxName)
	case d.rows:
		return c.Name, nil
	}
	return d.key(d, c.Name)
}

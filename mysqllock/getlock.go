package mysqllock

import (
	"fmt"

	"github.com/interlock-go/interlock/internal/connlock"
)

// getlock has the queries of technique session.
type getlock struct {
	prefix   string
	sequence bool // tokens are of a sequence, else of a table
}

// technique returns the queries, without Classify.
func (g getlock) technique() connlock.Technique {
	return connlock.Technique{
		Try:  g.try,
		Wait: func(l connlock.Lock) connlock.Query { return g.get(l, forever) },
		Leave: func(l connlock.Lock) connlock.Query {
			return connlock.Query{SQL: fmt.Sprintf("select release_lock('%s')", l.Key)}
		},
		Left:  func(r connlock.Reply) bool { return r.Field == "1" },
		Waits: waits, Free: "select release_all_locks()",
	}
}

// forever is how long a statement waits for a lock, in seconds.
const forever = 31_536_000

// get takes a lock, waits for it for patience seconds, and draws its token. The answer is the
// token, or -1.
func (g getlock) get(l connlock.Lock, patience int) connlock.Query {
	return connlock.Query{SQL: fmt.Sprintf("call %sget('%s', %d)", g.prefix, l.Key, patience)}
}

// try takes a lock that is free. Only here a statement may use the sequence: one that waits would
// block a FLUSH TABLES for as long.
func (g getlock) try(l connlock.Lock) connlock.Query {
	if g.sequence {
		return connlock.Query{SQL: fmt.Sprintf("select case when get_lock('%s', 0) = 1 then nextval(%stoken) else -1 end", l.Key, g.prefix)}
	}
	return g.get(l, 0)
}

// waits counts a connection if it stands in the line of a lock.
func waits(id string) connlock.Query {
	return connlock.Query{SQL: fmt.Sprintf("select count(*) from information_schema.processlist where id = %s and state = 'User lock'", id)}
}

// hand releases a lock if another connection waits for it. It answers -1 if that does not wait,
// else whether there was a lock; and whether the other connection has it now: the server lets the
// next one in before it goes on.
func hand(l connlock.Lock, other string) connlock.Query {
	return connlock.Query{SQL: fmt.Sprintf("select concat_ws(' ', case when (%s) > 0 then ifnull(release_lock('%s'), 0) else -1 end, ifnull(is_used_lock('%[2]s') = %[3]s, 0))",
		waits(other).SQL, l.Key, other)}
}

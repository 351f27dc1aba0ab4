package pglock

import (
	"context"
	"fmt"
	"time"
)

// rowWords are the words of technique rowlock: a transaction for each claim, on a connection apart, locks the name's row. It is the row that
// InTx changes, so a lock of either kind excludes the other.
func (s *connSession) rowWords(l *link) words {
	mode := "share"
	if l.Kind.Exclusive() {
		mode = "update"
	}
	begin, lock := "begin isolation level read committed; ", fmt.Sprintf("select 0 from %sheld where name = decode('%x', 'hex') for %s", s.d.in, l.Name, mode)
	return words{
		try:   begin + lock + " skip locked",
		wait:  begin + s.insert(l) + lock, // who made the row may have rolled back
		shows: "select count(*) from pg_locks l where l.pid = %s and l.locktype in ('tuple', 'transactionid')",
		leave: "rollback; select true",
	}
}

// insert makes the row of a name that has none.
func (s *connSession) insert(l *link) string {
	return fmt.Sprintf("insert into %sheld values (decode('%x', 'hex'), 0) on conflict do nothing; ", s.d.in, l.Name)
}

// prepare makes the row in a transaction of its own: one that locks it would keep others out with it. It reports whether the row is
// there for all to see. Where a program's transaction has made it and has not ended, that has the lock.
func (s *connSession) prepare(ctx context.Context, l *link) (bool, error) {
	c, err := s.take(ctx, nil, false)
	if err != nil {
		return false, err
	}
	r := c.call("select set_config('lock_timeout', '10ms', true); "+s.insert(l), s.spec.TTL)
	if r.err == nil || code(r.err) == "55P03" {
		return r.err == nil, nil
	}
	return false, classify(r.err, &s.d.options)
}

// draw has a lock that was taken by a row draw its token over the holding connection, where it is flushed at once and not with the end of
// the transaction that has the lock.
func (s *connSession) draw(l *link, r reply) reply {
	if !s.d.rows || r.err != nil || len(r.rows) == 0 || !s.fenced(l) {
		return r
	}
	ctx, cancel := context.WithTimeout(s.d.ctx, max(s.spec.TTL, time.Second))
	defer cancel()
	c, err := s.take(ctx, nil, false)
	if err == nil {
		r = c.call("select nextval('"+s.d.in+"token')", s.spec.TTL)
		err = r.err
	}
	if err != nil {
		r.err = fmt.Errorf("there is no token: %s", err.Error()) // it is the end of no connection that has the lock
	}
	return r
}

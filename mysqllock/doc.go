// Package mysqllock keeps locks in the rows of a MariaDB or MySQL database.
//
// A table has one row a name, and the whole line of the name in it, so what is decided of a line is
// decided under the lock of one row. Another row for each session says how long its claims are good
// for: any number of locks is renewed in one statement, and only the database's clock decides.
//
// The tables have to be there: [Migrate] makes them, or the command:
//
//	interlock migrate --store mysql://app@db/shop
//
// A program that has a pool already makes the driver of it:
//
//	driver, err := mysqllock.New(ctx, db, nil)
//	locks, err := interlock.New(driver, nil)
//
// # What happens
//
// Every step is one CALL of a procedure, which begins a transaction at READ COMMITTED, decides and
// commits: one round trip, which means the same whatever the isolation level, autocommit, sql_mode
// or time zone of the connection is. Nothing that it sets outlives it, and no connection of a
// program's pool is kept while a lock is held or waited for.
//
// In a driver that dials for itself, by its URL or [NewConnector], a claim for a mutex or a write
// lock waits without polling: each process holds a lock by GET_LOCK for each of its claims, and a
// claim waits for the lock of the claim before it. Beyond [Options].MaxWaiting, over a program's
// pool, for readers and for permits, claims poll: the first in line 40 times a second, the others 4
// times, by a statement that locks nothing.
//
// A request whose answer is lost is sent again. It carries the time by which it is void, by the
// database's clock, so that a request which a network held back takes no lock that nobody would
// release.
//
// # What it promises
//
// One server that keeps what it has committed never has two holders, as long as clocks run at the
// same rate within 1 %, and its tokens grow for ever. A failover to a replica that lacks the last
// commits may lose a lock that was just taken: then two can hold, and only the tokens keep them
// apart. See docs/backends/mysql.md for the whole statement, and for what was run on MySQL itself:
// nothing.
package mysqllock

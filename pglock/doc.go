// Package pglock keeps locks in the rows of a PostgreSQL database.
//
// A table has one row a name, and the whole line of the name in it. A free name is taken by one
// statement, which succeeds by the table's unique index or by finding the line empty under the lock
// of its row. A claim that finds it held joins the line, and a release takes the first of the line,
// draws its token and makes it the holder, in one statement. One more row for each session has the
// time until which its claims are valid, so any number of locks is renewed in one statement, and
// only the database's clock decides.
//
//	package main
//
//	import (
//		"context"
//		"log"
//
//		"github.com/interlock-go/interlock"
//		_ "github.com/interlock-go/interlock/pglock"
//	)
//
//	func main() {
//		ctx := context.Background()
//		client, err := interlock.Open(ctx, "postgres://localhost/shop", nil)
//		if err != nil {
//			log.Fatal(err)
//		}
//		defer client.Close()
//		err = client.Mutex("coupons/42").Do(ctx, func(ctx context.Context) error {
//			log.Print("nobody else does this now; token ", interlock.Fence(ctx, "coupons/42"))
//			return nil
//		})
//		if err != nil {
//			log.Fatal(err)
//		}
//	}
//
// The tables have to be there: [Migrate] makes them, or the command:
//
//	interlock migrate --store postgres://localhost/shop
//
// A program that has a pool already, or a sql.DB (see [NewSQL]), makes the driver of it:
//
//	driver, err := pglock.New(ctx, pool, nil)
//	locks, err := interlock.New(driver, nil)
//
// # What happens
//
// Every step is one call of a function in the database, sent as one message with the isolation
// level that it needs, so it is one round trip, means the same whatever the database's default is,
// and works through a transaction pooler. Nothing that it sets outlives it, and no connection of
// the pool is kept while a lock is held or waited for.
//
// A claim that waits gets its messages by NOTIFY, over one connection for each driver, which is
// opened when a claim first waits and closed a while after the last one did. A release without
// waiters sends no message. A channel's name is 128 random bits, and a message names a claim by a
// hash that only those can compute who may read its row: others can neither receive nor forge it. A
// message that is lost does no harm: the next renewal finds what it said.
//
// A request whose answer is lost is sent again. It carries the time by which it is void, by the
// database's clock, so that a request which a network held back takes no lock that nobody would
// release.
//
// # Other ways
//
// That is technique rows. [Options].Technique session keeps locks as the server's advisory locks
// instead, which live with connections of their own; rowlock locks a row there; and [InTx] takes a
// lock in a transaction of the program's own. They do not exclude rows: see
// docs/backends/postgres.md.
//
// # What it promises
//
// One server that keeps what it has committed never has two holders, as long as clocks run at the
// same rate within 1 %, and its tokens grow for ever. A failover to a standby that lacks the last
// commits may lose a lock that was just taken: then two can hold, and only the tokens keep them
// apart. See docs/backends/postgres.md for the whole statement, the rights that a user of locks
// needs, and the tables.
package pglock

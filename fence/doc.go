// Package fence is the checking half of fencing tokens: the resource that a lock protects refuses the writes of
// those who no longer hold it.
//
// No lock can stop a holder that sleeps through the end of its lease (a paused process, a suspended machine, a packet
// stuck in a switch) and then writes. But every exclusive lease has a token, and of two leases of one name the later
// has the larger. A resource that remembers the highest token it has seen can tell:
//
//	token ≥ highest seen   passes, and is the highest seen from now on; equal, because one holder writes many times
//	token < highest seen   is refused: [ErrStale]
//	0                      is refused always: [ErrNoToken]. Readers and permits have no token, nor have unknown names
//
// The check and the write must be one atomic step at the resource. This package does it for files ([File]), for any
// database behind database/sql ([Table]), for HTTP services ([Handler]) and for things in memory ([Mark]); [Check]
// is the bare rule for everything else.
//
// # A complete program
//
//	package main
//
//	import (
//		"context"
//		"database/sql"
//		"log"
//
//		"github.com/interlock-go/interlock"
//		"github.com/interlock-go/interlock/fence"
//		_ "github.com/interlock-go/interlock/filelock"
//		_ "github.com/jackc/pgx/v5/stdlib"
//	)
//
//	func main() {
//		ctx := context.Background()
//		client, err := interlock.Open(ctx, "file:/var/lib/shop/locks", nil)
//		if err != nil {
//			log.Fatal(err)
//		}
//		defer client.Close()
//		db, err := sql.Open("pgx", "postgres://app@db/shop")
//		if err != nil {
//			log.Fatal(err)
//		}
//		fences, err := fence.NewTable(fence.PostgreSQL, "fence")
//		if err != nil {
//			log.Fatal(err)
//		}
//		if _, err := db.ExecContext(ctx, fences.Schema()); err != nil {
//			log.Fatal(err)
//		}
//
//		const name = "coupons/42"
//		err = client.Mutex(name).Do(ctx, func(ctx context.Context) error {
//			return fences.Do(ctx, db, name, interlock.Fence(ctx, name), func(tx *sql.Tx) error {
//				var left int
//				if err := tx.QueryRowContext(ctx, `SELECT n FROM coupons WHERE id = 42`).Scan(&left); err != nil {
//					return err
//				}
//				_, err := tx.ExecContext(ctx, `UPDATE coupons SET n = $1 WHERE id = 42`, left-1)
//				return err
//			})
//		})
//		if err != nil {
//			log.Fatal(err) // errors.Is(err, fence.ErrStale): somebody else sold it meanwhile
//		}
//	}
//
// # Claim before the first read
//
// To check writes is not enough. Suppose A with token 33 is paused, and B with 34 takes the lock:
//
//	B (34) reads 5
//	A (33) wakes and writes 6      accepted: the resource has not seen 34 yet
//	B (34) writes 6 from its 5     accepted: A's update, which A was told is done, is gone
//
// So a new holder first stores its token at the resource, and only then reads: it claims. With the claim, A's
// write in the second line is refused. A model checker finds the lost update with fenced writes alone and none with
// claims; so do this package's tests, which run every interleaving of three holders.
// [File.Update] and [Table.Do] claim by themselves, in the right order. Whoever reads first and writes later
// calls Claim ([File.Claim], [Table.Claim], [Mark.Claim]) in front.
//
// # The fence in the row itself
//
// Where a lock protects one row, that row can carry the token and no table is needed:
//
//	UPDATE doc SET fence = ?           WHERE id = ? AND fence <= ?      -- claim, before the read
//	UPDATE doc SET body = ?, fence = ? WHERE id = ? AND fence <= ?      -- write
//
// No row means a stale token (or a missing row). On MySQL connect with clientFoundRows=true, or an update that changes
// nothing counts as none.
//
// # What cannot be fenced
//
// An e-mail, a payment, a command on somebody else's machine: what does not remember cannot refuse. Give it an
// idempotency key instead, the lock's name and token together ("coupons/42:1795000000000032"), so that the other side
// can drop the second request of one holder; a later holder has another key and must look before it repeats the deed.
//
// # One resource, one source of tokens
//
// Tokens are ordered within one name of one store. A resource guarded with the tokens of two names, or moved to a
// store whose tokens are smaller, refuses the smaller ones forever: that is safe, and wrong. On such a move stop
// all holders and reset the mark.
package fence

package pglock_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/pglock"
)

// What docs/from-advisory-locks.md shows: a program that calls pg_advisory_lock and one that uses
// Interlock exclude each other.
func Example_advisoryLocks() {
	ctx := context.Background()
	server, err := servertest.StartPostgres(ctx, servertest.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	pool, err := pgxpool.New(ctx, server.URL())
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	if err := pglock.Migrate(ctx, pool, nil); err != nil { // once
		log.Fatal(err)
	}

	before := func(work func() error) error {
		conn, err := pool.Acquire(ctx)
		if err != nil {
			return err
		}
		defer conn.Release()
		if _, err := conn.Exec(ctx, "select pg_advisory_lock(42)"); err != nil {
			return err
		}
		defer conn.Exec(ctx, "select pg_advisory_unlock(42)") //nolint:errcheck // as it is done
		return work()
	}

	driver, err := pglock.New(ctx, pool, &pglock.Options{Technique: "session", Keys: "number"})
	if err != nil {
		log.Fatal(err)
	}
	client, err := interlock.New(driver, nil)
	if err != nil {
		log.Fatal(err)
	}
	after := func(work func(ctx context.Context) error) error {
		return client.Mutex("42").Do(ctx, work)
	}

	err = before(func() error {
		_, err := client.Mutex("42").TryLock(ctx)
		fmt.Println("held by hand, so ours is refused:", errors.Is(err, interlock.ErrHeld))
		return nil
	})
	fmt.Println(err)
	err = after(func(ctx context.Context) error {
		var free bool
		if err := pool.QueryRow(ctx, "select pg_try_advisory_lock(42)").Scan(&free); err != nil {
			return err
		}
		fmt.Println("held by ours, so by hand it is refused:", !free)
		fmt.Println("with a token:", interlock.Fence(ctx, "42") > 0)
		return nil
	})
	fmt.Println(err)
	fmt.Println(errors.Join(client.Close(), driver.Close(ctx)))
	// Output:
	// held by hand, so ours is refused: true
	// <nil>
	// held by ours, so by hand it is refused: true
	// with a token: true
	// <nil>
	// <nil>
}

// A lock of the transaction under the key that others take as an advisory lock.
func ExampleTxOptions() {
	ctx := context.Background()
	server, err := servertest.StartPostgres(ctx, servertest.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	pool, err := pgxpool.New(ctx, server.URL())
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()

	tx, err := pool.Begin(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer tx.Rollback(ctx) //nolint:errcheck // nothing was written
	token, err := pglock.InTx(ctx, tx, "foo", &pglock.TxOptions{Advisory: true, Keys: "django"})
	if err != nil {
		log.Fatal(err)
	}
	var free bool
	if err := pool.QueryRow(ctx, "select pg_try_advisory_lock(-1938594527)").Scan(&free); err != nil {
		log.Fatal(err)
	}
	fmt.Println("free for others:", free)
	fmt.Println("token, without our tables:", token)
	// Output:
	// free for others: false
	// token, without our tables: 0
}

package pglock_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/fence"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/pglock"
)

// A table of the program's own refuses who comes late: the highest token seen is a row beside it,
// and is raised in the transaction that writes. The lease may be of any technique that has tokens,
// and the table in any database.
func Example_fence() {
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
	db := stdlib.OpenDBFromPool(pool)
	defer db.Close()
	fences, err := fence.NewTable(fence.PostgreSQL, "fence")
	if err != nil {
		log.Fatal(err)
	}
	for _, statement := range []string{fences.Schema(), "create table coupons (id int, n int)", "insert into coupons values (42, 10)"} { // once
		if _, err := db.ExecContext(ctx, statement); err != nil {
			log.Fatal(err)
		}
	}

	client, err := interlock.Open(ctx, server.URL(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	const name = "coupons/42"
	sell := func(ctx context.Context) error {
		return fences.Do(ctx, db, name, interlock.Fence(ctx, name), func(tx *sql.Tx) error {
			var left int
			if err := tx.QueryRowContext(ctx, "select n from coupons where id = 42").Scan(&left); err != nil {
				return err
			}
			_, err := tx.ExecContext(ctx, "update coupons set n = $1 where id = 42", left-1)
			return err
		})
	}
	var earlier context.Context
	fmt.Println(client.Mutex(name).Do(ctx, func(ctx context.Context) error { earlier = ctx; return sell(ctx) }))
	fmt.Println(client.Mutex(name).Do(ctx, sell))
	// A holder of before, who was stopped and does not know yet that it is over.
	fmt.Println(errors.Is(sell(context.WithoutCancel(earlier)), fence.ErrStale))

	var left int
	if err := pool.QueryRow(ctx, "select n from coupons where id = 42").Scan(&left); err != nil {
		log.Fatal(err)
	}
	fmt.Println(left, "left")
	// Output:
	// <nil>
	// <nil>
	// true
	// 8 left
}

package pglock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/pglock"
)

// Coupons are sold in one transaction with the lock: what was sold is there when the next one
// looks, or neither is.
func ExampleInTx() {
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
	if _, err := pool.Exec(ctx, "create table sold (coupon int, customer int, token bigint)"); err != nil {
		log.Fatal(err)
	}

	errSoldOut := errors.New("sold out")
	sell := func(customer int) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			token, err := pglock.InTx(ctx, tx, "coupons/42", nil)
			if err != nil {
				return err
			}
			var sold int
			if err := tx.QueryRow(ctx, "select count(*) from sold where coupon = 42").Scan(&sold); err != nil {
				return err
			}
			if sold == 10 {
				return errSoldOut
			}
			_, err = tx.Exec(ctx, "insert into sold values (42, $1, $2)", customer, token)
			return err
		})
	}
	var customers sync.WaitGroup
	for customer := range 25 {
		customers.Go(func() {
			if err := sell(customer); err != nil && !errors.Is(err, errSoldOut) {
				log.Print(err)
			}
		})
	}
	customers.Wait()
	var sold int
	if err := pool.QueryRow(ctx, "select count(*) from sold").Scan(&sold); err != nil {
		log.Fatal(err)
	}
	fmt.Println(sold, "of 10 are sold")
	// Output: 10 of 10 are sold
}

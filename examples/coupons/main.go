// Command coupons is a shop that sells a limited number of coupons over HTTP. Start it as often as you like, on one
// database and one store of locks, and let people buy:
//
//	coupons -addr localhost:8081 -guard fence &
//	coupons -addr localhost:8082 -guard fence &
//	curl -X POST 'localhost:8081/coupons/summer/buy?buyer=ann'
//	curl localhost:8082/coupons/summer
//
// See package shop for how it keeps from selling a coupon twice, and `interlock-lab demo coupons` to watch it fail and hold.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/interlock-go/interlock"
	_ "github.com/interlock-go/interlock/all" // whatever store -locks names; a program that knows its store imports that one
	"github.com/interlock-go/interlock/examples/coupons/shop"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

// open opens the ledger, in a PostgreSQL in a schema of its own.
func open(ctx context.Context, database string) (*shop.Ledger, error) {
	if strings.HasPrefix(database, "postgres:") || strings.HasPrefix(database, "postgresql:") {
		return shop.OpenPostgresLedger(ctx, database, "coupons")
	}
	return shop.OpenLedger(ctx, database)
}

func run(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("coupons", flag.ExitOnError)
	addr := flags.String("addr", "localhost:8080", "where buyers come")
	database := flags.String("db", filepath.Join(os.TempDir(), "coupons.db"), "the ledger: the file of an SQLite database, or the URL of a PostgreSQL")
	locks := flags.String("locks", "file:"+filepath.Join(os.TempDir(), "coupons-locks"), "the store of locks, as a URL")
	guard := flags.String("guard", string(shop.Fence), "what keeps the shops apart: none, lock or fence")
	stock := flags.Int("stock", 100, "how many coupons there are, when the ledger is new")
	if err := flags.Parse(args); err != nil {
		return err
	}

	ledger, err := open(ctx, *database)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ledger.Close()) }()
	if err := ledger.Offer(ctx, "summer", *stock); err != nil {
		return err
	}
	client, err := interlock.Open(ctx, *locks, &interlock.Options{Require: interlock.Fenced})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Shutdown(ctx)) }() // no buyer is inside any more

	s, err := shop.New(shop.Options{
		Name: fmt.Sprintf("shop %d", os.Getpid()), Guard: shop.Guard(*guard),
		Locks: client, Ledger: ledger, Bank: shop.PretendBank(50 * time.Millisecond),
	})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		return err
	}
	log.Printf("open: http://%s/coupons/summer", listener.Addr())
	return s.Serve(ctx, listener)
}

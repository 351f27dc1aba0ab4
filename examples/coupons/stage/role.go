package stage

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/examples/coupons/shop"
)

// role is what a process is to play. It comes over its standard input, because a store's URL may have a password in it.
type role struct {
	Name   string
	Guard  shop.Guard
	Locks  string // the store's URL
	TTL    time.Duration
	Ledger place
	Bank   string // URL
}

// RunShop is a shop process: it reads its role from in, serves until in ends, and says on out what it does. The program
// that is Config.Command calls it.
func RunShop(ctx context.Context, in io.Reader, out io.Writer) (err error) {
	r := bufio.NewReader(in)
	line, err := r.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("stage: this process is started by the play, which says what it is to do: %w", err)
	}
	var role role
	if err := json.Unmarshal(line, &role); err != nil {
		return fmt.Errorf("stage: read the role: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, r) // ends with the play, however that ends
		cancel()
	}()

	logger := slog.New(slog.NewJSONHandler(out, nil))
	ledger, err := role.Ledger.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ledger.Close()) }()
	o := shop.Options{Name: role.Name, Guard: role.Guard, Ledger: ledger, Bank: shop.BankAt{URL: role.Bank}, Logger: logger}
	if role.Guard != shop.None {
		client, err := interlock.Open(ctx, role.Locks, &interlock.Options{Owner: role.Name, TTL: role.TTL, Logger: logger})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, client.Shutdown(ctx)) }()
		o.Locks = client
	}
	s, err := shop.New(o)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	logger.Info("open", "address", l.Addr().String())
	return s.Serve(ctx, l)
}

package shop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/fence"
)

// Guard says what keeps the processes of a shop apart while one of them sells.
type Guard string

// The guards.
const (
	None  Guard = "none"
	Lock  Guard = "lock"
	Fence Guard = "fence"
)

// ErrSoldOut says that no coupon is left. The buyer was not charged.
var ErrSoldOut = errors.New("shop: sold out")

// Sale is a coupon that was sold.
type Sale struct {
	Coupon string `json:"coupon"`
	Number int    `json:"number"` // of this coupon, from the stock's size down to 1
	Buyer  string `json:"buyer"`
	Shop   string `json:"shop"`         // the process that sold it
	Token  uint64 `json:"token,string"` // of the lease under which it did; 0 without a lock
}

// Options are what a shop is made of.
type Options struct {
	Name   string            // of this process, for people
	Guard  Guard             // against the other processes
	Locks  *interlock.Client // may be nil with the guard None
	Ledger *Ledger
	Bank   Bank
	Logger *slog.Logger // default: slog.Default()
}

// Shop is one process's part of the shop. It is safe for concurrent use.
type Shop struct{ o Options }

// New returns a shop. It closes nothing of what it is given.
func New(o Options) (*Shop, error) {
	switch {
	case o.Guard != None && o.Guard != Lock && o.Guard != Fence:
		return nil, fmt.Errorf("shop: guard %q: want %s, %s or %s", o.Guard, None, Lock, Fence)
	case o.Guard != None && o.Locks == nil:
		return nil, fmt.Errorf("shop: guard %q needs Options.Locks", o.Guard)
	case o.Ledger == nil || o.Bank == nil:
		return nil, errors.New("shop: want Options.Ledger and Options.Bank")
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return &Shop{o}, nil
}

// Buy sells one coupon to buyer. Errors match ErrSoldOut; fence.ErrStale when the sale was refused and the money given
// back; interlock.ErrLost when the lock was lost on the way, whatever became of the sale; or are those of the lock, of
// the bank or of the ledger.
func (s *Shop) Buy(ctx context.Context, coupon, buyer string) (Sale, error) {
	order := Sale{Coupon: coupon, Buyer: buyer, Shop: s.o.Name}
	switch s.o.Guard {
	case Lock:
		return s.locked(ctx, order)
	case Fence:
		return s.fenced(ctx, order)
	}
	return s.sell(ctx, order, s.o.Ledger.Write)
}

// LockName is the name of the lock that guards a coupon, and of its row in the table of fences.
func LockName(coupon string) string { return "coupons/" + coupon }

// locked sells while no other process does.
func (s *Shop) locked(ctx context.Context, order Sale) (sale Sale, err error) {
	err = s.o.Locks.Mutex(LockName(order.Coupon)).Do(ctx, func(ctx context.Context) error {
		sale, err = s.sell(ctx, order, s.o.Ledger.Write)
		return err
	})
	return sale, err
}

// fenced does that too, and shows the ledger the lease's token: before the first look, so that nobody who came earlier
// can write after it, and with the write, so that nobody who came later can have written before it.
func (s *Shop) fenced(ctx context.Context, order Sale) (sale Sale, err error) {
	name := LockName(order.Coupon)
	err = s.o.Locks.Mutex(name).Do(ctx, func(ctx context.Context) error {
		token := interlock.Fence(ctx, name)
		if err := s.o.Ledger.Claim(ctx, name, token); err != nil {
			return err
		}
		sale, err = s.sell(ctx, order, func(ctx context.Context, sale Sale) error {
			return s.o.Ledger.WriteFenced(ctx, name, token, sale)
		})
		return err
	})
	return sale, err
}

// sell is the sale itself: look, charge, write. Nothing in it keeps others from doing the same at the same time.
func (s *Shop) sell(ctx context.Context, order Sale, write func(context.Context, Sale) error) (Sale, error) {
	left, err := s.o.Ledger.Left(ctx, order.Coupon)
	if err != nil {
		return Sale{}, err
	}
	sale := order
	sale.Number, sale.Token = left, interlock.Fence(ctx, LockName(order.Coupon))
	log := s.o.Logger.With("buyer", sale.Buyer, "number", sale.Number, "token", sale.Token)
	log.Info("looks")
	if left <= 0 {
		log.Info("sold out")
		return Sale{}, ErrSoldOut
	}

	// From here on money moves. What has been paid for is written down, so neither a buyer who hangs up nor a lease
	// that ends breaks this off: it does not look at its context again. To look once more before the write would make
	// the gap for a stop smaller, and could not close it.
	ctx = context.WithoutCancel(ctx)
	if err := s.o.Bank.Charge(ctx, sale.Buyer); err != nil {
		log.Info("not paid", "error", err.Error())
		return Sale{}, err
	}
	err = write(ctx, sale)
	switch {
	case errors.Is(err, fence.ErrStale):
		// The ledger is certain that nothing was written: the money can go back.
		log.Info("refused", "error", err.Error())
		return Sale{}, errors.Join(err, s.o.Bank.Refund(ctx, sale.Buyer))
	case err != nil:
		// It may have been written or not. Somebody has to look before any money moves.
		log.Error("unknown", "error", err.Error())
		return Sale{}, err
	}
	log.Info("sold")
	return sale, nil
}

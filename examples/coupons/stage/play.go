package stage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/examples/coupons/shop"
)

// play is a play that is on.
type play struct {
	Config
	place  place
	ledger *shop.Ledger
}

// tries is how often an act is played that must go wrong and does not.
const tries = 3

// Run plays the play and returns what it has shown; whether that is what it had to show says the report. An error is
// something that kept it from being played.
func Run(ctx context.Context, c Config) (report *Report, err error) {
	c, err = c.withDefaults()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "interlock-coupons-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if c.Store == "" {
		c.Store = "file:" + filepath.Join(dir, "locks")
	}
	if err := c.try(ctx); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStore, err)
	}
	p := &play{Config: c, place: newPlace(c.Store, dir)}
	p.ledger, err = p.place.open(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStore, err)
	}
	defer func() { err = errors.Join(err, p.place.clear(ctx, p.ledger), p.ledger.Close()) }()

	begun := time.Now()
	report = &Report{Database: p.place.String(), Store: driver.Redact(c.Store), Servers: c.Servers, Coupons: c.Coupons, Buyers: c.Buyers, TTL: Seconds(c.TTL)}
	for i, act := range []Act{
		{Title: "no lock", Guard: shop.None, MustErr: true},
		{Title: "a lock", Guard: shop.Lock},
		{Title: "a lock, its holder stopped", Guard: shop.Lock, MustErr: true, Stop: &Stop{}},
		{Title: "lock and token, the same", Guard: shop.Fence, Stop: &Stop{}},
	} {
		act.Number = i + 1
		p.Progress(fmt.Sprintf("act %d: %s", act.Number, act.Title))
		for try := range tries {
			if err := p.act(ctx, &act, try); err != nil {
				return nil, fmt.Errorf("stage: act %d, %s: %w", act.Number, act.Title, err)
			}
			if len(act.Missing) == 0 || !act.MustErr {
				break // what must hold is not tried until it does
			}
			p.Progress("   it did not go wrong: " + act.Missing[0])
		}
		p.Progress(fmt.Sprintf("   %d sold of %d: oversold by %d", act.Sold, act.Stock, act.Oversold))
		report.Acts = append(report.Acts, act)
	}
	report.Took = Seconds(time.Since(begun))
	return report, nil
}

// ErrStore says that the store of locks cannot be used.
var ErrStore = errors.New("stage: cannot use the store")

// try opens the store once, so that one that cannot be used is not found in the middle of the play, and chooses the TTL where nobody has.
func (c *Config) try(ctx context.Context) error {
	if strings.HasPrefix(c.Store, "mem:") {
		return errors.New("a store in memory is another one in each process: want one that they share, as file:PATH")
	}
	d, err := driver.OpenURL(ctx, c.Store)
	if err != nil {
		return err
	}
	c.TTL = cmp.Or(c.TTL, max(2*time.Second, d.Traits().MinTTL))
	client, err := interlock.New(d, &interlock.Options{TTL: c.TTL, Require: interlock.Fenced | interlock.Expires})
	if err == nil {
		err = client.Health(ctx)
		err = errors.Join(err, client.Shutdown(ctx))
	}
	return errors.Join(err, d.Close(context.WithoutCancel(ctx)))
}

// limit is how long an act may take at most. It ends a play that hangs, and judges nothing.
func (c Config) limit() time.Duration {
	return 2*time.Minute + 10*c.TTL + time.Duration(c.Buyers)*100*time.Millisecond
}

// act opens the shops, lets the buyers in, closes the shops and reads the ledger.
func (p *play) act(ctx context.Context, a *Act, try int) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, p.limit(), fmt.Errorf("no end after %v", p.limit()))
	defer cancel()
	begun := time.Now()
	// Every play locks the same few names: a store keeps a counter for each for ever. Two plays on one store only wait
	// for each other.
	coupon := fmt.Sprintf("demo-%d-%d", a.Number, try+1)
	if err := p.ledger.Offer(ctx, coupon, p.Coupons); err != nil {
		return err
	}
	bank, err := openBank(8*time.Millisecond<<try, "the-slow-one")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bank.close()) }()

	notes := &journal{}
	shops, err := p.open(ctx, a.Guard, bank.url, notes)
	defer func() {
		for _, s := range shops { // those that have not closed below
			s.kill()
		}
	}()
	if err != nil {
		return err
	}

	width := min(32<<try, p.Buyers)
	if a.Stop != nil {
		width = max(1, min(p.Coupons/4, 12)) // what stands in line before the slow buyer is sold before it
	}
	buyers := newCrowd(coupon, shops, width, p.Buyers)
	defer buyers.client.CloseIdleConnections()
	if a.Stop == nil {
		err = buyers.come(ctx, func(answer) bool { return false })
	} else {
		err = p.stopped(ctx, a.Stop, bank, buyers)
	}
	if err == nil {
		err = buyers.leave(ctx)
	}
	if err != nil {
		return err
	}
	buyers.client.CloseIdleConnections()
	for _, s := range shops {
		err = errors.Join(err, s.end())
	}
	shops = nil
	if err != nil {
		return err
	}
	return p.count(ctx, a, coupon, buyers, notes, begun, try+1)
}

// open opens the shops.
func (p *play) open(ctx context.Context, guard shop.Guard, bank string, notes *journal) (shops []*process, err error) {
	for i := range p.Servers {
		r := role{Name: fmt.Sprintf("shop %d", i+1), Guard: guard, Locks: p.Store, TTL: p.TTL, Ledger: p.place, Bank: bank}
		s, err := startShop(ctx, p.Command(), i, r, notes)
		if err != nil {
			return shops, err
		}
		shops = append(shops, s)
	}
	return shops, nil
}

// stopped sells some, stops the first shop while the slow buyer's payment is on its way, lets the others sell the rest,
// continues it, and lets more buyers come.
func (p *play) stopped(ctx context.Context, s *Stop, bank *bank, buyers *crowd) error {
	victim := buyers.shops[0]
	*s = Stop{Shop: victim.role.Name, Buyer: bank.slow}
	err := buyers.come(ctx, func(answer) bool { return buyers.sold >= p.Coupons/4 })
	if err != nil {
		return err
	}
	buyers.send(ctx, victim, bank.slow)
	if err := buyers.until(ctx, bank.asked); err != nil {
		return err
	}
	if err := victim.stop(); err != nil {
		return err
	}
	s.stoppedAt = time.Now()
	p.Progress("   " + victim.role.Name + " is stopped in the middle of a sale")
	close(bank.answer) // it waits in the stopped process's socket

	err = buyers.come(ctx, func(a answer) bool { return a.shop != victim && a.status == http.StatusGone })
	if err != nil {
		return err
	}
	p.Progress("   the others have sold the rest; " + victim.role.Name + " is continued")
	s.continuedAt = time.Now()
	if err := victim.resume(); err != nil {
		return err
	}
	for s.Answer == "" {
		a, err := buyers.next(ctx)
		if err != nil {
			return err
		}
		if a.buyer == bank.slow {
			s.Status, s.Answer = a.status, a.text
			p.Progress(fmt.Sprintf("   its buyer is told: %d %s", a.status, refusal(a.text)))
		}
	}
	return buyers.come(ctx, func(answer) bool { return false })
}

// count reads the ledger and the journal, and judges.
func (p *play) count(ctx context.Context, a *Act, coupon string, buyers *crowd, notes *journal, begun time.Time, try int) error {
	account, err := p.ledger.Account(ctx, coupon)
	if err != nil {
		return err
	}
	entries := notes.sorted()
	a.Account, a.Oversold = account, account.Oversold()
	a.Tries, a.Took = try, Seconds(time.Since(begun))
	a.visits = visits(entries, account.Stock)
	a.begun = begun
	if len(a.visits) > 0 {
		a.begun = a.visits[0].from
	}
	a.Answers = Answers{Sold: buyers.sold, SoldOut: buyers.soldOut}
	for _, o := range buyers.others {
		if a.Stop == nil || o.buyer != a.Stop.Buyer {
			a.Answers.Others = append(a.Answers.Others, fmt.Sprintf("%d %s", o.status, o.text))
		}
	}
	if a.Stop != nil {
		a.Stop.tell(a.begun, entries)
	}
	a.judge()
	return nil
}

// tell fills in what the journal knows.
func (s *Stop) tell(begun time.Time, entries []entry) {
	s.Stopped, s.Continued = Seconds(s.stoppedAt.Sub(begun)), Seconds(s.continuedAt.Sub(begun))
	for _, e := range entries {
		own := e.Buyer == s.Buyer
		at := Seconds(e.Time.Sub(begun))
		switch {
		case own && e.What == "looks":
			s.Number, s.Token = e.Number, e.Token
		case own:
			s.Ended, s.Written = at, e.What == "sold"
		case e.What == "looks" && s.By == "" && at > s.Stopped:
			s.By, s.Overtaken = fmt.Sprintf("shop %d", e.Shop+1), at
		case e.What == "sold" && at > s.Stopped && at < s.Continued:
			s.Meanwhile++
		}
	}
}

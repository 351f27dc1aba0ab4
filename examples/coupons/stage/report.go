package stage

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/interlock-go/interlock/examples/coupons/shop"
)

// Report is what the play has shown.
type Report struct {
	Database string  `json:"database"` // of the ledger
	Store    string  `json:"store"`    // without secrets
	Servers  int     `json:"servers"`
	Coupons  int     `json:"coupons"`
	Buyers   int     `json:"buyers"`
	TTL      Seconds `json:"ttl_s"`
	Took     Seconds `json:"took_s"`
	Acts     []Act   `json:"acts"`
}

// Act is what one act has shown. The account is the database's.
type Act struct {
	Number  int        `json:"number"`
	Title   string     `json:"title"`
	Guard   shop.Guard `json:"guard"`
	MustErr bool       `json:"must_oversell"`
	shop.Account
	Oversold int      `json:"oversold"`
	Answers  Answers  `json:"answers"`
	Stop     *Stop    `json:"stop,omitempty"` // of the holder, if one is stopped
	Tries    int      `json:"tries"`          // how often it was played, each time with more load
	Took     Seconds  `json:"took_s"`
	Missing  []string `json:"missing,omitempty"` // what it should have shown and has not

	visits []visit
	begun  time.Time
}

// Answers is how many buyers were told what.
type Answers struct {
	Sold    int      `json:"sold"`
	SoldOut int      `json:"sold_out"`
	Others  []string `json:"others,omitempty"` // in the shops' words; the buyer of a stopped sale is not among them
}

// Stop is the story of a holder that was stopped in the middle of a sale. Times are counted from the act's beginning.
type Stop struct {
	Shop      string  `json:"shop"`
	Buyer     string  `json:"buyer"`
	Number    int     `json:"number"` // of the coupon that it was about to sell
	Token     uint64  `json:"token,string"`
	Stopped   Seconds `json:"stopped_s"`
	Overtaken Seconds `json:"overtaken_s"` // when another shop had the lock
	By        string  `json:"by"`          // that shop
	Meanwhile int     `json:"meanwhile"`   // coupons that the others sold
	Continued Seconds `json:"continued_s"`
	Written   bool    `json:"written"` // the late write was accepted
	Ended     Seconds `json:"ended_s"` // when it was accepted or refused
	Status    int     `json:"status"`  // that the buyer got
	Answer    string  `json:"answer"`

	stoppedAt, continuedAt time.Time
}

// Seconds is a time that JSON shows as a number.
type Seconds time.Duration

// String is as of time.Duration, to ten milliseconds.
func (s Seconds) String() string { return time.Duration(s).Round(10 * time.Millisecond).String() }

// MarshalJSON writes seconds, to the millisecond.
func (s Seconds) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, "%.3f", time.Duration(s).Seconds()), nil
}

// ErrNotShown says that an act did not show what it had to.
var ErrNotShown = errors.New("stage: an act did not show what it had to")

// Err returns nil if every act has shown what it must, and otherwise an error that matches ErrNotShown.
func (r *Report) Err() error {
	var missing []string
	for _, a := range r.Acts {
		for _, m := range a.Missing {
			missing = append(missing, fmt.Sprintf("act %d: %s", a.Number, m))
		}
	}
	if missing == nil {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrNotShown, strings.Join(missing, "; "))
}

// judge says what is missing.
func (a *Act) judge() {
	a.Missing = nil
	miss := func(format string, args ...any) { a.Missing = append(a.Missing, fmt.Sprintf(format, args...)) }
	if a.MustErr {
		if a.Oversold == 0 {
			miss("%d coupons were sold of %d, not too many", a.Sold, a.Stock)
		}
		if a.Stop != nil && !a.Stop.Written {
			miss("the late write was not accepted, but: %s", a.Stop.Answer)
		}
		return
	}
	if !a.Right() || a.Left != 0 {
		miss("%d coupons were sold of %d, %d of them twice, and %d are left", a.Sold, a.Stock, a.Twice, a.Left)
	}
	if lost := a.Answers.Sold - a.Sold; lost > 0 {
		miss("%d buyers were told that they have a coupon, and the ledger does not know of it", lost)
	}
	if a.Stop != nil && a.Stop.Written {
		miss("the late write was accepted")
	}
}

// Story is what happened, in a few sentences.
func (a *Act) Story() string {
	story := a.story()
	if n := len(a.Answers.Others); n > 0 {
		story += fmt.Sprintf(" Besides, the shops could not tell %d of the buyers whether they have a coupon, as “%s”.", n, a.Answers.Others[0])
	}
	return story
}

func (a *Act) story() string {
	switch s := a.Stop; {
	case a.Oversold > 0 && s == nil:
		return fmt.Sprintf("Nothing keeps the shops apart. While a buyer pays, others look, see the same number, and buy the same coupon: "+
			"%d buyers have one, of %d, and the ledger believes that %d are left.", a.Sold, a.Stock, a.Left)
	case s == nil:
		return fmt.Sprintf("One shop at a time looks, takes the money and writes the sale down: %d buyers have a coupon, %d were told that there are no more.",
			a.Sold, a.Answers.SoldOut)
	case s.Written:
		return fmt.Sprintf("%s looked, saw %d, took the money, and was stopped. %v later its lease was over: %s had the lock, rightly, and the others sold %s. "+
			"Continued, %s wrote what it had in hand, “%d left”. Its lease's context ended the moment it ran again, and it did not look; "+
			"had it looked, it could have been stopped just behind that. Afterwards Mutex.Do returned ErrLost: true, and too late. Oversold: %d.",
			capital(s.Shop), s.Number, s.Overtaken-s.Stopped, s.By, plural(s.Meanwhile), s.Shop, s.Number-1, a.Oversold)
	}
	return fmt.Sprintf("The same: %s stopped with coupon %d in its hand, overtaken by %s after %v, continued when the others had sold %s. "+
		"But %s had shown the ledger a later token before it looked, so the late write was refused: “%s”. The buyer got the money back.",
		a.Stop.Shop, a.Stop.Number, a.Stop.By, a.Stop.Overtaken-a.Stop.Stopped, plural(a.Stop.Meanwhile), a.Stop.By, refusal(a.Stop.Answer))
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func plural(n int) string {
	if n == 1 {
		return "one coupon more"
	}
	return fmt.Sprintf("%d coupons more", n)
}

// refusal is the first line of an answer: the reason, without what else went wrong after it.
func refusal(answer string) string {
	first, _, _ := strings.Cut(answer, "\n")
	return first
}

package stage

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/examples/coupons/shop"
	_ "github.com/interlock-go/interlock/filelock"
	"github.com/interlock-go/interlock/internal/servertest"
	_ "github.com/interlock-go/interlock/memcachedlock"
)

// What an act must show is what its account says, and nothing that the act says of itself.
func TestJudge(t *testing.T) {
	right := shop.Account{Stock: 10, Sold: 10}
	for name, c := range map[string]struct {
		act  Act
		want string // that is missing; empty if nothing is
	}{
		"no lock, oversold":             {Act{MustErr: true, Account: shop.Account{Stock: 10, Sold: 12, Twice: 2}}, ""},
		"no lock, and right":            {Act{MustErr: true, Account: right}, "10 coupons were sold of 10, not too many"},
		"lock, right":                   {Act{Account: right, Answers: Answers{Sold: 10}}, ""},
		"lock, oversold":                {Act{Account: shop.Account{Stock: 10, Sold: 11, Twice: 1}}, "11 coupons were sold of 10, 1 of them twice"},
		"lock, the same number twice":   {Act{Account: shop.Account{Stock: 10, Sold: 10, Twice: 1}}, "1 of them twice"},
		"lock, unsold":                  {Act{Account: shop.Account{Stock: 10, Sold: 9, Left: 1}}, "1 are left"},
		"lock, a sale that is not":      {Act{Account: right, Answers: Answers{Sold: 11}}, "1 buyers were told that they have a coupon"},
		"lock, a buyer in doubt":        {Act{Account: right, Answers: Answers{Sold: 9, Others: []string{"500"}}}, ""},
		"stopped, late write accepted":  {Act{MustErr: true, Account: shop.Account{Stock: 10, Sold: 12, Twice: 2}, Stop: &Stop{Written: true}}, ""},
		"stopped, no late write":        {Act{MustErr: true, Account: shop.Account{Stock: 10, Sold: 12, Twice: 2}, Stop: &Stop{Answer: "no"}}, "the late write was not accepted, but: no"},
		"token, late write refused":     {Act{Account: right, Answers: Answers{Sold: 10}, Stop: &Stop{}}, ""},
		"token, late write accepted":    {Act{Account: right, Stop: &Stop{Written: true}}, "the late write was accepted"},
		"token, refused and yet spoilt": {Act{Account: shop.Account{Stock: 10, Sold: 10, Left: 3}, Stop: &Stop{}}, "3 are left"},
	} {
		a := c.act
		a.Oversold = a.Account.Oversold()
		a.judge()
		err := (&Report{Acts: []Act{a}}).Err()
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (!errors.Is(err, ErrNotShown) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
}

func TestVisits(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	got := visits([]entry{
		{Shop: 0, Time: at(1), What: "looks", Buyer: "ann", Number: 2},
		{Shop: 1, Time: at(2), What: "looks", Buyer: "bob", Number: 2},
		{Shop: 1, Time: at(3), What: "sold", Buyer: "bob", Number: 2},
		{Shop: 0, Time: at(4), What: "sold", Buyer: "ann", Number: 2},
		{Shop: 0, Time: at(5), What: "looks", Buyer: "eve"},
		{Shop: 0, Time: at(6), What: "sold out", Buyer: "eve"},
		{Shop: 0, Time: at(7), What: "interlock: lease lost"},
	}, 1)
	want := []visit{
		{shop: 1, buyer: "bob", from: at(2), to: at(3), number: 2, end: "sold"},
		{shop: 0, buyer: "ann", from: at(1), to: at(4), number: 2, end: "sold", surplus: true},
	}
	if len(got) != len(want) {
		t.Fatalf("visits %+v, want %+v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("visit %+v, want %+v", got[i], want[i])
		}
	}
}

func TestJournalSkipsWhatIsNotItsOwn(t *testing.T) {
	j, opened := &journal{}, ""
	j.read(2, strings.NewReader("panic: no JSON\n"+
		`{"time":"2026-01-02T03:04:05Z","msg":"open","address":"127.0.0.1:99"}`+"\n"+
		`{"time":"2026-01-02T03:04:06Z","msg":"looks","buyer":"ann","number":7,"token":1795000000000032}`+"\n"),
		func(address string) { opened = address })
	want := entry{Shop: 2, Time: time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC), What: "looks", Buyer: "ann", Number: 7, Token: 1795000000000032}
	if got := j.sorted(); opened != "127.0.0.1:99" || len(got) != 1 || got[0] != want {
		t.Errorf("opened %q, entries %+v, want %+v", opened, got, want)
	}
}

func TestStepsAreRound(t *testing.T) {
	for end, want := range map[time.Duration]time.Duration{
		time.Millisecond: 100 * time.Millisecond, 900 * time.Millisecond: 100 * time.Millisecond, time.Second: 200 * time.Millisecond,
		4 * time.Second: 500 * time.Millisecond, 45 * time.Second: 5 * time.Second, 3 * time.Minute: 20 * time.Second,
	} {
		if got := step(end); got != want {
			t.Errorf("step(%v) is %v, want %v", end, got, want)
		}
	}
}

// Where nobody has chosen a TTL it is one that the store gives.
func TestTTLOfTheStore(t *testing.T) {
	t.Parallel()
	for scheme, want := range map[string]time.Duration{"file:" + t.TempDir(): 2 * time.Second, servertest.Memcached(t).URL(): 3 * time.Second} {
		c, err := Config{Store: scheme, Command: func() *exec.Cmd { return nil }}.withDefaults()
		if err == nil {
			err = c.try(t.Context())
		}
		if err != nil || c.TTL != want {
			t.Errorf("%s: TTL %v, %v, want %v", scheme, c.TTL, err, want)
		}
	}
}

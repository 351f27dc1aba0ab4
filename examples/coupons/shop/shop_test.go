package shop_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/examples/coupons/shop"
	"github.com/interlock-go/interlock/memlock"
)

// fakeBank counts, and lets a test act while a buyer's payment is on its way.
type fakeBank struct {
	mu      sync.Mutex
	balance int
	during  map[string]func() // by buyer
}

func (b *fakeBank) Charge(_ context.Context, buyer string) error {
	b.mu.Lock()
	b.balance++
	act := b.during[buyer]
	b.mu.Unlock()
	if act != nil {
		act()
	}
	return nil
}

func (b *fakeBank) Refund(context.Context, string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.balance--
	return nil
}

// market is two shops over one ledger, one bank and one store of locks.
type market struct {
	locks *memlock.Driver
	bank  *fakeBank
	shops [2]*httptest.Server
}

func open(t *testing.T, guard shop.Guard, stock int) *market {
	t.Helper()
	m := &market{locks: memlock.New(), bank: &fakeBank{during: map[string]func(){}}}
	path := filepath.Join(t.TempDir(), "a ledger?.db")
	for i := range m.shops {
		ledger, err := shop.OpenLedger(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = ledger.Close() })
		if err := ledger.Offer(t.Context(), "summer", stock); err != nil {
			t.Fatal(err)
		}
		quiet := slog.New(slog.DiscardHandler)
		client, err := interlock.New(m.locks.Share(), &interlock.Options{Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() })
		s, err := shop.New(shop.Options{Name: "shop", Guard: guard, Locks: client, Ledger: ledger, Bank: m.bank, Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		m.shops[i] = httptest.NewServer(s.Handler())
		t.Cleanup(m.shops[i].Close)
	}
	return m
}

// buy returns the status and the text that a buyer gets. It may be called from any goroutine.
func (m *market) buy(t *testing.T, shop int, buyer string) (int, string) {
	t.Helper()
	res, err := http.Post(m.shops[shop].URL+"/coupons/summer/buy?buyer="+buyer, "", nil)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Error(err)
	}
	return res.StatusCode, string(text)
}

// expect buys and checks the status.
func (m *market) expect(t *testing.T, shop int, buyer string, want int) {
	t.Helper()
	if got, text := m.buy(t, shop, buyer); got != want {
		t.Errorf("%s got %d, %q, want %d", buyer, got, text, want)
	}
}

func (m *market) account(t *testing.T) shop.Account {
	t.Helper()
	res, err := http.Get(m.shops[1].URL + "/coupons/summer")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var a shop.Account
	if err := json.NewDecoder(res.Body).Decode(&a); err != nil {
		t.Fatal(err)
	}
	return a
}

func TestSellsWhatThereIs(t *testing.T) {
	for _, guard := range []shop.Guard{shop.None, shop.Lock, shop.Fence} {
		t.Run(string(guard), func(t *testing.T) {
			m := open(t, guard, 3)
			for i, want := range []int{200, 200, 200, 410, 410} {
				m.expect(t, i%2, "ann", want)
			}
			if got, want := m.account(t), (shop.Account{Stock: 3, Sold: 3}); got != want || !got.Right() {
				t.Errorf("account %+v, want %+v", got, want)
			}
			if m.bank.balance != 3 {
				t.Errorf("the bank has %d prices, want 3", m.bank.balance)
			}
		})
	}
}

func TestSaleSaysWhatWasSold(t *testing.T) {
	m := open(t, shop.Fence, 7)
	_, text := m.buy(t, 0, "ann")
	var s shop.Sale
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatal(err)
	}
	if s.Token == 0 {
		t.Error("sold under a lock without a token")
	}
	s.Token = 0
	if want := (shop.Sale{Coupon: "summer", Number: 7, Buyer: "ann", Shop: "shop"}); s != want {
		t.Errorf("sale %+v, want %+v", s, want)
	}
}

func TestRefusesNonsense(t *testing.T) {
	m := open(t, shop.Lock, 1)
	m.expect(t, 0, "", http.StatusBadRequest)
	res, err := http.Post(m.shops[0].URL+"/coupons/winter/buy?buyer=ann", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if text, _ := io.ReadAll(res.Body); res.StatusCode != http.StatusInternalServerError || !strings.Contains(string(text), `there are no coupons "winter"`) {
		t.Errorf("%d, %q", res.StatusCode, text)
	}
}

// Without a lock, whoever looks while another one pays buys the same coupon.
func TestUnguardedSellsTwice(t *testing.T) {
	m := open(t, shop.None, 5)
	m.bank.during["ann"] = func() { m.expect(t, 1, "bob", 200) }
	m.expect(t, 0, "ann", 200)
	if got, want := m.account(t), (shop.Account{Stock: 5, Left: 4, Sold: 2, Twice: 1}); got != want || got.Right() {
		t.Errorf("account %+v, want %+v", got, want)
	}
}

// Under the lock the second one waits until the first has paid.
func TestLockedSellsOneAfterTheOther(t *testing.T) {
	m := open(t, shop.Lock, 5)
	var others sync.WaitGroup
	m.bank.during["ann"] = func() {
		others.Go(func() { m.expect(t, 1, "bob", 200) })
		for l, err := range m.locks.Watch(t.Context(), shop.LockName("summer")) {
			if err != nil {
				t.Error(err)
			}
			if err != nil || len(l.Claims) == 2 { // bob stands in line
				return
			}
		}
	}
	m.expect(t, 0, "ann", 200)
	others.Wait()
	if got, want := m.account(t), (shop.Account{Stock: 5, Left: 3, Sold: 2}); got != want {
		t.Errorf("account %+v, want %+v", got, want)
	}
}

// ann loses the lock while she pays, and others buy everything else. What is written late then depends on the guard.
func late(t *testing.T, guard shop.Guard) (m *market, status int, text string) {
	t.Helper()
	m = open(t, guard, 3)
	m.bank.during["ann"] = func() {
		m.locks.Lose(shop.LockName("summer")) // returns when the context of ann's lease has ended
		for range 3 {
			m.expect(t, 1, "bob", 200)
		}
		m.expect(t, 1, "bob", 410)
	}
	status, text = m.buy(t, 0, "ann")
	return m, status, text
}

func TestLateWriteUnderTheLockSellsTwice(t *testing.T) {
	m, status, text := late(t, shop.Lock)
	if status != 500 || !strings.Contains(text, interlock.ErrLost.Error()) {
		t.Errorf("ann got %d, %q, want 500 and %v", status, text, interlock.ErrLost)
	}
	if got, want := m.account(t), (shop.Account{Stock: 3, Left: 2, Sold: 4, Twice: 1}); got != want || got.Oversold() != 1 {
		t.Errorf("account %+v, want %+v", got, want)
	}
	m.expect(t, 1, "bob", 200) // what is not there
}

func TestLateWriteIsRefusedByItsToken(t *testing.T) {
	m, status, text := late(t, shop.Fence)
	if status != 503 || !strings.Contains(text, "is stale") {
		t.Errorf("ann got %d, %q, want 503 and that her token is stale", status, text)
	}
	if got, want := m.account(t), (shop.Account{Stock: 3, Sold: 3}); got != want || !got.Right() {
		t.Errorf("account %+v, want %+v", got, want)
	}
	if m.bank.balance != 3 {
		t.Errorf("the bank has %d prices, want 3: ann's was to go back", m.bank.balance)
	}
	m.expect(t, 1, "bob", 410)
}

// A lease that is over is no reason to refuse: nobody came later.
func TestLateWriteThatNobodyOvertookIsTaken(t *testing.T) {
	m := open(t, shop.Fence, 3)
	m.bank.during["ann"] = func() { m.locks.Lose(shop.LockName("summer")) }
	m.expect(t, 0, "ann", 500) // the lock was lost, says Do; the sale is in the ledger
	if got, want := m.account(t), (shop.Account{Stock: 3, Left: 2, Sold: 1}); got != want {
		t.Errorf("account %+v, want %+v", got, want)
	}
}

func TestNewSaysWhatIsMissing(t *testing.T) {
	for _, o := range []shop.Options{
		{Guard: "luck"}, {Guard: shop.Lock}, {Guard: shop.None},
	} {
		if _, err := shop.New(o); err == nil || !strings.HasPrefix(err.Error(), "shop: ") {
			t.Errorf("%+v: error %v", o, err)
		}
	}
}

func TestServeEndsWithItsContext(t *testing.T) {
	ledger, err := shop.OpenLedger(t.Context(), filepath.Join(t.TempDir(), "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer ledger.Close()
	s, err := shop.New(shop.Options{Guard: shop.None, Ledger: ledger, Bank: shop.PretendBank(0)})
	if err != nil {
		t.Fatal(err)
	}
	l := httptest.NewUnstartedServer(nil).Listener
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	cancel()
	if err := <-served; err != nil && !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
}

func TestBanks(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.String())
		if r.FormValue("buyer") == "broke" {
			http.Error(w, "no", http.StatusPaymentRequired)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	defer server.Close()
	b := shop.BankAt{URL: server.URL}
	if err := errors.Join(b.Charge(t.Context(), "ann & bob"), b.Refund(t.Context(), "ann & bob")); err != nil {
		t.Error(err)
	}
	if err := b.Charge(t.Context(), "broke"); err == nil || !strings.Contains(err.Error(), "402") {
		t.Errorf("error %v, want one with the status", err)
	}
	if got, want := strings.Join(asked, "; "), "POST /charge?buyer=ann+%26+bob; POST /refund?buyer=ann+%26+bob; POST /charge?buyer=broke"; got != want {
		t.Errorf("asked %s, want %s", got, want)
	}
}

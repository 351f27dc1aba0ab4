package shop

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// Bank moves money. It takes its time, and what it did cannot be rolled back with a transaction of the ledger.
type Bank interface {
	Charge(ctx context.Context, buyer string) error
	Refund(ctx context.Context, buyer string) error
}

// BankAt is the bank behind an HTTP service: POST URL/charge?buyer=… and URL/refund?buyer=….
type BankAt struct{ URL string }

// Charge takes the price of a coupon from buyer.
func (b BankAt) Charge(ctx context.Context, buyer string) error { return b.post(ctx, "charge", buyer) }

// Refund gives it back.
func (b BankAt) Refund(ctx context.Context, buyer string) error { return b.post(ctx, "refund", buyer) }

func (b BankAt) post(ctx context.Context, what, buyer string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.URL+"/"+what+"?buyer="+url.QueryEscape(buyer), http.NoBody)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("shop: %s %s: %w", what, buyer, err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusNoContent {
		return fmt.Errorf("shop: %s %s: the bank says %s", what, buyer, res.Status)
	}
	return nil
}

// PretendBank says yes to everything, after this long.
type PretendBank time.Duration

// Charge takes nothing.
func (b PretendBank) Charge(ctx context.Context, _ string) error {
	t := time.NewTimer(time.Duration(b))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Refund gives nothing back.
func (b PretendBank) Refund(ctx context.Context, buyer string) error { return b.Charge(ctx, buyer) }

package shop

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/interlock-go/interlock/fence"
)

// Handler serves
//
//	POST /coupons/{coupon}/buy?buyer=NAME   200 and the sale; 410 sold out; 503 not sold, come again; 500 anything else
//	GET  /coupons/{coupon}                  200 and the account
func (s *Shop) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /coupons/{coupon}/buy", func(w http.ResponseWriter, r *http.Request) {
		buyer := r.FormValue("buyer")
		if buyer == "" {
			http.Error(w, "shop: who buys? want ?buyer=NAME", http.StatusBadRequest)
			return
		}
		sale, err := s.Buy(r.Context(), r.PathValue("coupon"), buyer)
		answer(w, sale, err)
	})
	mux.HandleFunc("GET /coupons/{coupon}", func(w http.ResponseWriter, r *http.Request) {
		account, err := s.o.Ledger.Account(r.Context(), r.PathValue("coupon"))
		answer(w, account, err)
	})
	return mux
}

func answer(w http.ResponseWriter, v any, err error) {
	switch {
	case err == nil:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v) // a buyer who hung up has bought nevertheless
	case errors.Is(err, ErrSoldOut):
		http.Error(w, err.Error(), http.StatusGone)
	case errors.Is(err, fence.ErrStale):
		w.Header().Set("Retry-After", "1")
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	default:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// Serve answers buyers until ctx ends, and then those that are inside.
func (s *Shop) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{Handler: s.Handler(), ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return server.Shutdown(ctx)
}

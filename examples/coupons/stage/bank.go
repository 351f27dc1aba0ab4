package stage

import (
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"time"
)

// bank takes the money of all buyers of an act, and some time for each. It must be made by openBank.
type bank struct {
	url    string
	server *http.Server
	takes  time.Duration // on average

	// The payment of this buyer is not answered before somebody says so.
	slow   string
	asked  chan struct{} // closed when it has come in
	answer chan struct{} // to be closed
}

func openBank(takes time.Duration, slow string) (*bank, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	b := &bank{
		url: "http://" + l.Addr().String(), takes: takes,
		slow: slow, asked: make(chan struct{}), answer: make(chan struct{}),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /charge", b.charge)
	mux.HandleFunc("POST /refund", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	b.server = &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _ = b.server.Serve(l) }() // until close
	return b, nil
}

func (b *bank) charge(w http.ResponseWriter, r *http.Request) {
	if r.FormValue("buyer") == b.slow {
		close(b.asked) // a buyer comes once
		select {
		case <-b.answer:
		case <-r.Context().Done():
		}
	} else {
		t := time.NewTimer(b.takes/2 + rand.N(b.takes))
		defer t.Stop()
		select {
		case <-t.C:
		case <-r.Context().Done():
		}
	}
	w.WriteHeader(http.StatusNoContent)
}

func (b *bank) close() error {
	err := b.server.Close()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

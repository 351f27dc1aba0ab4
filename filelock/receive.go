//go:build linux || darwin

package filelock

import "github.com/interlock-go/interlock/filelock/internal/layout"

// receiver is a session as its inbox knows it.
type receiver struct{ s *session }

// Live implements link.Receiver. The session ends if somebody has found its time over.
func (r receiver) Live() bool {
	_, live := r.s.file.Until()
	if !live {
		r.s.holdings.end()
	}
	return live
}

// Look implements link.Receiver.
func (r receiver) Look(h layout.Hash) {
	if r.s.p.deaf.Load() {
		return
	}
	if n := r.s.names.known(h); n != nil {
		defer r.s.names.put(n)
		if n.look(false) != nil {
			n.Check()
		}
	}
}

// LookAtAll implements link.Receiver.
func (r receiver) LookAtAll() {
	claims, _ := r.s.holdings.all()
	for n := range namesOf(claims) {
		r.Look(n.hash)
	}
}

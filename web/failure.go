package web

import (
	"time"

	"github.com/interlock-go/interlock/web/internal/hub"
)

// failureAnswer is a store that does not answer, as programs read it.
type failureAnswer struct {
	Since  time.Time `json:"since"`
	Detail string    `json:"detail"`
}

// failureOf returns a failure as programs read it, nil for none.
func failureOf(f *hub.Failure, who Principal) *failureAnswer {
	if f == nil {
		return nil
	}
	return &failureAnswer{f.Since.UTC(), who.reason(f.Err)}
}

// failureView is a failure as a page has it.
type failureView struct {
	What, Why string
	Since     *moment
}

// failureViewOf returns a failure as a page has it for somebody, nil for none.
func failureViewOf(f *hub.Failure, who Principal) *failureView {
	if f == nil {
		return nil
	}
	v := &failureView{What: "The store does not answer", Why: who.reason(f.Err), Since: clockTime(f.Since)}
	if f.Unsupported() {
		v.What, v.Since = "The store cannot do that", nil
	}
	return v
}

// listFailure returns the failure of a list as a page has it, nil for none.
func listFailure(f *hub.Failure, who Principal) *failureView {
	v := failureViewOf(f, who)
	switch {
	case v == nil:
	case f.Unsupported():
		v.What = "This store does not list its names"
	default:
		v.What = "The list could not be read"
	}
	return v
}

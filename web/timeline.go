package web

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/printable"
	"github.com/interlock-go/interlock/web/internal/hub"
)

// eventView is an event as a page has it.
type eventView struct {
	Key, Class, Words string
	At                *moment
}

// timelineOf returns events as a page has them, the newest first.
func timelineOf(events []hub.Event) (views []eventView) {
	for _, e := range slices.Backward(events) {
		views = append(views, eventView{
			fmt.Sprintf("%d.%s.%s", e.At.UnixNano(), e.What, e.ID), map[string]string{hub.Marked: "broken", hub.Broke: "broken"}[e.What], eventWords(e), clockTime(e.At),
		})
	}
	return views
}

// sumWords returns a timeline in one sentence.
func sumWords(events []hub.Event, waited time.Duration) string {
	grants := 0
	for _, e := range events {
		if e.What == hub.Granted {
			grants++
		}
	}
	if len(events) == 0 {
		return "Nothing yet: only what happens while somebody looks is seen."
	}
	return fmt.Sprintf("The last %d events, %d of them grants; %s of waiting have ended.", len(events), grants, spanWords(waited))
}

// eventWords returns an event in one sentence.
func eventWords(e hub.Event) string {
	who := ownerWords(driver.Holder{Owner: e.Owner})
	after := ""
	if e.Waited != nil {
		after = " after " + spanWords(time.Duration(*e.Waited)*time.Millisecond) + " of waiting"
	}
	var words string
	switch e.What {
	case hub.Waited:
		words = who + " waits"
	case hub.Granted:
		words = who + " got it" + after
		if e.Fence != "0" {
			words += ", with the token " + e.Fence
		}
	case hub.Marked:
		words = "it was taken away from " + who
	case hub.Gone:
		words = who + " has it no more"
		if e.Over {
			words += ": its time was over"
		}
	case hub.Left:
		words = who + " waits no more" + after
	case hub.Broke:
		words = cmp.Or(printable.Text(e.By), "somebody") + " broke the claim of " + who
		if e.Now {
			words += " at once"
		}
		if e.Reason != "" {
			words += " (" + printable.Text(e.Reason) + ")"
		}
		words += ": " + e.Result
	}
	return strings.TrimSpace(words) + " · " + e.ID
}

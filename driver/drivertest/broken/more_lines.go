package broken

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// moreLines are faults about what people see of a line as a whole.
var moreLines = []Driver{
	{
		Name: "ShowsBackwards", Law: "Also_Inspector", Says: "is shown as {public:",
		Fault: "The claims are shown from the last to the first.",
		new: func() *fault {
			return shown(&fault{}, func(_ *layer, line *driver.Line) { slices.Reverse(line.Claims) })
		},
	},
	{
		Name: "ShowsWaitersBackwards", Law: "Also_Inspector", Says: "is shown as {public:",
		Fault: "The claims that wait are shown from the last to the first.",
		new: func() *fault {
			return shown(&fault{}, func(_ *layer, line *driver.Line) {
				i := slices.IndexFunc(line.Claims, func(h driver.Holder) bool { return !h.Held })
				if i >= 0 {
					slices.Reverse(line.Claims[i:])
				}
			})
		},
	},
	{
		Name: "ShowsTenClaims", Law: "Also_Shown", Says: "and its line is shown with 10 claims: want them all",
		Fault: "A line is shown up to its tenth claim.",
		new: func() *fault {
			return shown(&fault{}, func(_ *layer, line *driver.Line) {
				line.Claims = line.Claims[:min(10, len(line.Claims))]
			})
		},
	},
	{
		Name: "ShowsAForeigner", Law: "Also_Inspector", Says: "is shown as {public:",
		Fault: "Claims of other sessions of this program are shown as written by another program.",
		new:   showingEach(func(h *driver.Holder) { h.Foreign = true }),
	},
	{
		Name: "ShowsTheExpired", Law: "Law08_Expiry", Says: "was released, and the line is shown with",
		Fault: "A claim is shown for a while after its time is over.",
		new: func() *fault {
			var mu sync.Mutex
			before := map[string]driver.Line{}
			return &fault{looks: func(l *layer, ctx context.Context, name string) (driver.Line, error) {
				line, err := l.memory.Line(ctx, name)
				mu.Lock()
				defer mu.Unlock()
				if old, ok := before[name]; ok && err == nil && len(line.Claims) == 0 {
					for _, h := range old.Claims {
						if h.Held && time.Since(h.Until) >= 0 && time.Since(h.Until) < time.Minute {
							line.Claims = append(line.Claims, h)
						}
					}
					return line, nil
				}
				before[name] = line
				return line, err
			}}
		},
	},
	{
		Name: "ShowsFromACache", Law: "Also_Inspector", Says: "is shown as [{",
		Fault: "A line is shown as it was up to half a second before.",
		new: func() *fault {
			var mu sync.Mutex
			type seen struct {
				line driver.Line
				at   time.Time
			}
			before := map[string]seen{}
			return &fault{looks: func(l *layer, ctx context.Context, name string) (driver.Line, error) {
				mu.Lock()
				defer mu.Unlock()
				if s, ok := before[name]; ok && time.Since(s.at) < 500*time.Millisecond {
					return s.line, nil
				}
				line, err := l.memory.Line(ctx, name)
				before[name] = seen{line, time.Now()}
				return line, err
			}}
		},
	},
	{
		Name: "EmptyIsError", Law: "Also_Inspector", Says: "no row.",
		Fault: "Line of a name where nobody stands is an error.",
		new: func() *fault {
			return &fault{looks: func(l *layer, ctx context.Context, name string) (driver.Line, error) {
				line, err := l.memory.Line(ctx, name)
				if err == nil && len(line.Claims) == 0 {
					err = errors.New("no row")
				}
				return line, err
			}}
		},
	},
	{
		Name: "LineWithoutName", Law: "Also_Inspector", Says: "is the line of",
		Fault: "A line is shown without its name.",
		new:   func() *fault { return shown(&fault{}, func(_ *layer, line *driver.Line) { line.Name = "" }) },
	},
}

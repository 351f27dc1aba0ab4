// Package examine has what the checks of several stores have in common: see driver.Examiner.
package examine

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// tolerance is how far apart clocks may be that people set by NTP, or now and then by hand. No lock hangs on it.
const tolerance = 5 * time.Second

// Reading is a server's clock as this machine saw it.
type Reading struct {
	Ahead time.Duration // of this machine's; less than 0: behind it
	Error time.Duration // by which it may be wrong: half of what the answer took
}

// Read asks a server for its time, twice, and returns the better reading.
func Read(ctx context.Context, ask func(context.Context) (time.Time, error)) (best Reading, err error) {
	for i := range 2 {
		asked := time.Now()
		t, err := ask(ctx)
		if err != nil {
			return best, err
		}
		half := time.Since(asked) / 2
		if i == 0 || half < best.Error {
			best = Reading{t.Sub(asked.Add(half)), half}
		}
	}
	return best, nil
}

// Clock is the finding about a server's clock. The code is the row of docs/failures.md that tells what a step of it does to this store.
func Clock(code, server string, r Reading) driver.Finding {
	f := driver.Finding{Code: code, Title: "clock", Server: server, Seen: "it is this machine's to within " + (max(r.Ahead, -r.Ahead) + r.Error).Round(time.Millisecond).String()}
	if max(r.Ahead, -r.Ahead)-r.Error <= tolerance {
		return f
	}
	f.Level = driver.LevelWarn
	word, by := "ahead of", r.Ahead
	if by < 0 {
		word, by = "behind", -by
	}
	f.Seen = fmt.Sprintf("the server's clock is %v %s this machine's", by.Round(time.Millisecond), word)
	f.Why = "one of the two is wrong; when the server's is set right by a step, locks end at once, or last that much longer"
	f.Mend = "have NTP set both, slowly: chronyc tracking, timedatectl"
	return f
}

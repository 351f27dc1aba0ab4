// Package database has the checks of a database server that several stores make: see driver.Examiner.
package database

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/examine"
)

// Store is what is examined, by the connections of the store's own pool: a setting is what it is there.
type Store struct {
	driver.Exam

	// Ask makes a query and returns its rows as text; null is "". It fails where the server does not answer.
	Ask func(ctx context.Context, query string) ([][]string, error)

	Timeout time.Duration // that the driver gives the server for one answer

	Flushes bool // each change waits until it is on the disk, whatever synchronous_commit is
	Leads   bool // a failover that loses the last commits loses locks; else each failover ends all, and that is told
	Own     bool // locks live with connections that set for themselves how long they may be idle, and how long a statement may take
}

// examination is one of a store.
type examination struct {
	Store
	facts map[string]string
	found []driver.Finding
}

// gather makes a query whose rows are names and values.
func (x *examination) gather(ctx context.Context, query string) error {
	rows, err := x.Ask(ctx, query)
	for _, f := range rows {
		x.facts[f[0]] = f[1]
	}
	return err
}

func (x *examination) add(f driver.Finding) { x.found = append(x.found, f) }

func (x *examination) is(name, value string) bool { return x.facts[name] == value }

// number is a fact that is a number, or 0.
func (x *examination) number(name string) int64 {
	n, _ := strconv.ParseInt(x.facts[name], 10, 64)
	return n
}

// clock compares the server's clock with this machine's. The query answers the µs since 1970.
func (x *examination) clock(ctx context.Context, query string) error {
	r, err := examine.Read(ctx, func(ctx context.Context) (time.Time, error) {
		rows, err := x.Ask(ctx, query)
		if err != nil || len(rows) == 0 {
			return time.Time{}, err
		}
		us, err := strconv.ParseInt(rows[0][0], 10, 64)
		return time.UnixMicro(us), err
	})
	if err != nil {
		return err
	}
	f := examine.Clock("S9", "", r)
	if f.Level > driver.LevelOK && x.Own {
		f.Why = "tokens go on from it: after a failover to a server whose clock is behind they would not grow"
	}
	x.add(f)
	return nil
}

// limit is a bound for connections, and how many of them there are.
type limit struct {
	what      string
	most, has int64
	mend      string // sets a higher one
}

// more is a limit of which less is used.
func more(most int64) int64 { return max(2*most, 10) }

// connections looks at the tightest of the limits. Those that are not above 0 are none.
func (x *examination) connections(smaller string, limits ...limit) {
	f := driver.Finding{Code: "S7", Title: "connections", Seen: "there is no limit"}
	free := int64(-1)
	for _, l := range limits {
		rest := max(l.most-l.has, 0)
		if l.most <= 0 || free >= 0 && rest >= free {
			continue
		}
		free = rest
		f.Level, f.Why, f.Mend = driver.LevelOK, "", ""
		f.Seen = fmt.Sprintf("%s is %d, and %d are there", l.what, l.most, l.has)
		if rest < few || rest*10 < l.most {
			f.Level = driver.LevelWarn
			f.Why = "a connection that is lost cannot be made again, and who cannot connect cannot renew: its lock goes"
			f.Mend = l.mend + "; or " + smaller
		}
	}
	x.add(f)
}

// few connections are what one process takes: to ask, and to be told.
const few = 3

// answers looks at a limit of the time that a statement may take; 0 is none.
func (x *examination) answers(setting string, takes time.Duration, mend string) {
	f := driver.Finding{Code: "S7", Title: "statement time", Seen: "a statement may take as long as it needs"}
	if takes > 0 {
		f.Seen = fmt.Sprintf("%s is %v", setting, takes)
		if takes < x.Timeout && !x.Own {
			f.Level = driver.LevelWarn
			f.Why = fmt.Sprintf("a slow disk or a crowd at one name, for which the driver has %v of patience, ends renewals by an error: a few in a row and a holder loses its lock", x.Timeout)
			f.Mend = mend
		}
	}
	x.add(f)
}

// idle looks at how soon a connection ends that nobody uses; 0 is never.
func (x *examination) idle(setting string, after time.Duration, mend string) {
	f := driver.Finding{Code: "S7", Title: "idle connections", Seen: "they stay"}
	if after > 0 {
		f.Seen = fmt.Sprintf("%s is %v", setting, after)
		if after < x.TTL && !x.Own {
			f.Level = driver.LevelWarn
			f.Why = fmt.Sprintf("with a TTL of %v a renewal may find its connection ended and has to make another one first, which a busy server may refuse", x.TTL)
			f.Mend = mend
		}
	}
	x.add(f)
}

// isolation tells the default level, which no step goes by.
func (x *examination) isolation(level string) {
	x.add(driver.Finding{Code: "S10", Title: "isolation", Seen: "the default is " + level + "; what decides of locks does not go by it"})
}

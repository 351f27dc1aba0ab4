package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// row is one line of the table of goals: contenders that do the same work,
// and what ours have to reach.
type row struct {
	name       string
	title      string
	options    string // what was chosen, for people who judge the figures
	programs   bool   // needs built programs
	stage      *stage // where all contenders perform, or nil
	reps       int
	scale      scale
	short      scale    // for -short; zero = short
	metrics    []metric // columns
	contenders []contender
	goals      []goal
}

// contender is a way to do a row's work.
type contender struct {
	name string
	role role
	race racer
}

// racer does the work once.
type racer interface {
	run(ctx context.Context, s scale) (sample, error)
}

type role string

const (
	floor  role = "floor"  // nothing that locks like this can be faster
	rival  role = "rival"  // what people use
	ours   role = "ours"   // Interlock
	remark role = "remark" // worth seeing, and no yardstick
)

// scale is how long a repetition takes.
type scale struct {
	warm, window time.Duration // of contests and pairs
	rest         time.Duration // of processes at rest
	runs         int           // of a program
	shrink       int           // divides the numbers of leases and waiters
	bin          string        // directory of built programs
}

// short is enough to see that everything works and to measure nothing.
var short = scale{warm: 20 * time.Millisecond, window: 60 * time.Millisecond, rest: 100 * time.Millisecond, runs: 2, shrink: 20}

// goal compares a median of ours with one of another contender, or with a
// number; where no repetition may miss it, the worst of ours.
type goal struct {
	who     string
	metric  metric
	sign    sign
	factor  float64
	stretch float64 // 0 = none
	than    string  // contender; empty = factor is the figure itself
}

type sign string

const (
	atLeast   sign = "≥"
	atMost    sign = "≤"
	neverOver sign = "in no repetition >" // the largest counts, not the median
)

func (s sign) holds(value, bound float64) bool {
	if s == atLeast {
		return value >= bound
	}
	return value <= bound
}

// result is a row that was measured.
type result struct {
	row     row
	spreads []map[metric]spread // by contender
	// failures are contenders that broke, by name: their figures are void.
	failures map[string]error
}

// measure runs the row's repetitions interleaved, A B C A B C …, so that
// whatever else the machine does meets all contenders alike.
func (r row) measure(ctx context.Context, progress io.Writer) result {
	samples := make([][]sample, len(r.contenders))
	failures := map[string]error{}
	if r.stage != nil {
		if err := r.stage.open(ctx); err != nil {
			for _, c := range r.contenders {
				failures[c.name] = err
			}
		}
		defer r.stage.close()
	}
	for rep := range r.reps {
		for i, c := range r.contenders {
			if failures[c.name] != nil {
				continue
			}
			fmt.Fprintf(progress, "\r\x1b[K%s %d/%d: %s", r.name, rep+1, r.reps, c.name)
			s, err := attempt(ctx, c, r.scale)
			if err != nil {
				failures[c.name] = err
				continue
			}
			samples[i] = append(samples[i], s)
		}
	}
	fmt.Fprint(progress, "\r\x1b[K")

	res := result{row: r, failures: failures, spreads: make([]map[metric]spread, len(r.contenders))}
	for i, c := range r.contenders {
		res.spreads[i] = map[metric]spread{}
		if failures[c.name] != nil {
			continue
		}
		for _, m := range r.metrics {
			if values := column(samples[i], m); len(values) > 0 {
				res.spreads[i][m] = spreadOf(values)
			}
		}
	}
	return res
}

// attempt runs a contender once, in bounded time.
func attempt(ctx context.Context, c contender, s scale) (sample, error) {
	limit := 30*time.Second + 3*(s.warm+s.window+s.rest)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	out, err := c.race.run(ctx, s)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil, fmt.Errorf("not over after %v: %w", limit, err)
	}
	return out, err
}

func column(samples []sample, m metric) []float64 {
	var values []float64
	for _, s := range samples {
		if v, ok := s[m]; ok {
			values = append(values, v)
		}
	}
	return values
}

// of finds what the repetitions of a contender say of a metric.
func (res result) of(name string, m metric) (spread, bool) {
	for i, c := range res.row.contenders {
		if c.name == name {
			s, ok := res.spreads[i][m]
			return s, ok
		}
	}
	return spread{}, false
}

// verdict is a goal with what was measured.
type verdict struct {
	goal  goal
	value float64 // ratio, or the figure itself
	known bool
}

func (v verdict) met() bool       { return v.known && v.goal.sign.holds(v.value, v.goal.factor) }
func (v verdict) stretched() bool { return v.known && v.goal.sign.holds(v.value, v.goal.stretch) }

func (res result) verdicts() []verdict {
	var out []verdict
	for _, g := range res.row.goals {
		v := verdict{goal: g}
		var s spread
		s, v.known = res.of(g.who, g.metric)
		v.value = s.Median
		if g.sign == neverOver {
			v.value = s.Max
		}
		if g.than != "" && v.known {
			var other spread
			if other, v.known = res.of(g.than, g.metric); v.known {
				v.value /= other.Median
			}
		}
		out = append(out, v)
	}
	return out
}

package main

import (
	"context"
	"path/filepath"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/contrib/interlockprom"
)

// openFilelockTraced is filelock with metrics for Prometheus, which nobody
// scrapes.
func openFilelockTraced(ctx context.Context, p place) (locker, error) {
	url := "file:" + filepath.Join(p.Dir, "interlock")
	return openMeteredWith(ctx, url, &interlock.Options{TTL: p.TTL, Tracer: interlockprom.New(nil)})
}

const oursTraced = "the same, with metrics"

func tracer() row {
	return row{
		name:    "tracer",
		title:   "embedded, free lock and unlock, with interlockprom as the tracer",
		options: "one goroutine, nobody else; default options; 300 ms of pairs after 30 ms of warm-up",
		reps:    15,
		scale:   scale{window: 300 * time.Millisecond},
		metrics: []metric{pairMedian, pairSlow},
		contenders: []contender{
			{oursFile, floor, freePair{"filelock"}},
			{oursTraced, ours, freePair{"filelock traced"}},
		},
		goals: []goal{{oursTraced, pairMedian, atMost, 1.05, 0, oursFile}},
	}
}

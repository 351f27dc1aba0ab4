package redlock

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/internal/redisstore"
	"github.com/interlock-go/interlock/redisconn"
)

// lift has a master's counters follow those of the others, or with at = -1 all masters' counters each other. The masters
// that remember are a majority, so the last token of every name is among theirs.
func (d *Driver) lift(ctx context.Context, all []*portrait, at int) error {
	largest := map[string]int64{}
	sources := 0
	for i, p := range all {
		if i == at || p.err != nil || at >= 0 && (p.vote == "" || p.knew != p.run && !p.durable) {
			continue
		}
		sources++
		if err := d.nodes[i].counters(ctx, largest); err != nil {
			return err
		}
	}
	if at >= 0 && sources < d.quorum {
		return fmt.Errorf("it has lost its counters, and only %d of %d masters remember theirs, want %d", sources, len(all), d.quorum)
	}
	for i, n := range d.nodes {
		if i == at || at < 0 {
			if err := n.raiseTo(ctx, largest); err != nil {
				return err
			}
		}
	}
	return nil
}

// counters adds a master's counters where they are the largest.
func (n *node) counters(ctx context.Context, largest map[string]int64) error {
	err := n.conn.EachMaster(ctx, func(do redisconn.DoFunc) error {
		return redisstore.Scan(ctx, do, redisstore.Glob("il:{*}:qfence:", ""), func(keys []string) error {
			keys = slices.DeleteFunc(keys, func(key string) bool { return nameOf(key) == "" && !strings.HasSuffix(key, ":qfence:") })
			if len(keys) == 0 {
				return nil
			}
			v, err := do(ctx, append([]string{"MGET"}, keys...)...)
			if err != nil {
				return err
			}
			values, _ := v.([]any)
			for i, value := range values {
				text, _ := value.(string)
				if c, err := strconv.ParseInt(text, 10, 64); err == nil && i < len(keys) {
					largest[keys[i]] = max(largest[keys[i]], c-c%2)
				}
			}
			return nil
		})
	})
	return redisconn.Classify(err)
}

func (n *node) raiseTo(ctx context.Context, largest map[string]int64) error {
	call := redisconn.Call{Script: liftScript, Behind: true}
	send := func() error {
		if len(call.Keys) == 0 {
			return nil
		}
		_, err := n.run.Run(ctx, call)
		call.Keys, call.Args = nil, nil
		return err
	}
	for key, c := range largest {
		call.Keys, call.Args = append(call.Keys, key), append(call.Args, strconv.FormatInt(c, 10))
		if len(call.Keys) == 5*batch {
			if err := send(); err != nil {
				return err
			}
		}
	}
	return send()
}

package redisstore

import (
	"context"
	"fmt"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redisconn"
)

// slots says whether all names can be locked in a Cluster.
func slots(ctx context.Context, do redisconn.DoFunc) ([]driver.Finding, error) {
	const all = "16384"
	f := driver.Finding{Code: "R12", Title: "slots", Seen: "all slots have masters"}
	v, err := read(ctx, do, "CLUSTER", "INFO")
	if unavailable(err) {
		f.Level, f.Seen = driver.LevelSkip, "this user may not ask CLUSTER INFO"
		return []driver.Finding{f}, nil
	}
	text, _ := v.(string)
	info := parseInfo(text)
	switch {
	case err != nil:
		return nil, err
	case info["cluster_slots_assigned"] != all:
		f.Level, f.Seen = driver.LevelBad, fmt.Sprintf("%s of %s slots have masters; the cluster is %s", info["cluster_slots_assigned"], all, info["cluster_state"])
		f.Why = "names in the other slots cannot be locked, and with cluster-require-full-coverage none"
		f.Mend = "redis-cli --cluster fix HOST:PORT"
	case info["cluster_state"] != "ok", info["cluster_slots_fail"] != "0":
		f.Level, f.Seen = driver.LevelBad, fmt.Sprintf("the cluster is %s; masters of %s slots have failed", info["cluster_state"], info["cluster_slots_fail"])
		f.Why = "names in these slots cannot be locked, renewed or given back"
		f.Mend = "bring the masters back, or have a replica take over: redis-cli --cluster check HOST:PORT"
	}
	return []driver.Finding{f}, nil
}

package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redisconn"
)

// guarded is implemented by a connection to a master that Sentinels know.
type guarded interface {
	EachSentinel(ctx context.Context, visit func(addr, master string, do redisconn.DoFunc, err error))
}

// fewestSentinels is the least number of Sentinels of which one may be lost.
const fewestSentinels = 3

// sentinels examines the Sentinels: whether they can agree on a failover, and how soon. Without any
// it returns nothing.
func sentinels(ctx context.Context, conn redisconn.Conn, e driver.Exam) []driver.Finding {
	g, ok := conn.(guarded)
	if !ok {
		return nil
	}
	named, all, quorum := 0, 0, "" // all according to those that answer
	var down time.Duration
	var silent, denied, few []string
	g.EachSentinel(ctx, func(addr, master string, do redisconn.DoFunc, err error) {
		named++
		var fields map[string]string
		if err == nil {
			fields, err = fieldsOf(ctx, do, "SENTINEL", "MASTER", master)
		}
		switch {
		case unavailable(err):
			denied = append(denied, addr)
			return
		case err != nil:
			silent = append(silent, fmt.Sprintf("%s: %v", addr, err))
			return
		}
		others, _ := strconv.Atoi(fields["num-other-sentinels"])
		ms, _ := strconv.ParseInt(fields["down-after-milliseconds"], 10, 64)
		all, down, quorum = max(all, others+1), max(down, time.Duration(ms)*time.Millisecond), fields["quorum"]
		if _, err := read(ctx, do, "SENTINEL", "CKQUORUM", master); redisconn.Is(err, "NOQUORUM") {
			few = append(few, fmt.Sprintf("%s: %v", addr, err))
		}
	})
	if named == 0 {
		return nil
	}
	agree := driver.Finding{Code: "R15", Title: "sentinels", Seen: fmt.Sprintf("there are %d, of which %s have to agree that the master is down (quorum), and %d to vote", all, quorum, all/2+1)}
	soon := driver.Finding{Code: "R15", Title: "failover time", Seen: fmt.Sprintf("a master that is silent for %v is taken for dead (down-after-milliseconds)", down)}
	agree.Why = "when the master is lost no replica takes its place: nobody can lock or renew until it is back"
	switch {
	case all == 0 && len(silent) == 0:
		agree = driver.Finding{Title: agree.Title, Level: driver.LevelSkip, Seen: "this user may not ask SENTINEL MASTER: " + strings.Join(denied, ", ")}
		soon = driver.Finding{Title: soon.Title, Level: driver.LevelSkip, Seen: agree.Seen}
	case all == 0:
		agree.Level, agree.Seen = driver.LevelWarn, "none of them answers: "+strings.Join(silent, "; ")
		agree.Mend = "bring them back; or name others in the URL"
		soon = driver.Finding{Title: soon.Title, Level: driver.LevelSkip, Seen: "no Sentinel answers"}
	case few != nil:
		agree.Level, agree.Seen, agree.Mend = driver.LevelWarn, strings.Join(few, "; "), "bring Sentinels back, or SENTINEL SET MASTER quorum to a number that there are; SENTINEL CKQUORUM MASTER says whether that is enough"
	case all < fewestSentinels:
		agree.Level, agree.Mend = driver.LevelWarn, "three Sentinels or five, on machines of their own"
		agree.Why = "when one of them is lost " + strings.TrimPrefix(agree.Why, "when the master is lost ")
	case silent != nil:
		agree.Level, agree.Seen = driver.LevelWarn, "not all answer: "+strings.Join(silent, "; ")
		agree.Mend = "bring them back; where it is only that this machine does not reach them, let it"
	default:
		agree.Why = ""
	}
	if soon.Level == driver.LevelOK && down > e.TTL {
		soon.Level = driver.LevelWarn
		soon.Why = fmt.Sprintf("that is more than a TTL of %v: when the master is lost all holders lose their locks before another one can be asked", e.TTL)
		soon.Mend = "SENTINEL SET MASTER down-after-milliseconds 5000, at each Sentinel; or a longer TTL"
	}
	return []driver.Finding{agree, soon}
}

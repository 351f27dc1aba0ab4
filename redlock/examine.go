package redlock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redisstore"
	"github.com/interlock-go/interlock/redisconn"
	"github.com/interlock-go/interlock/redlock/internal/membership"
)

// Examine implements driver.Examiner: it looks at each master as at a Redis of its own, and at
// whether enough of them have a vote.
func (d *Driver) Examine(ctx context.Context, e driver.Exam) ([]driver.Finding, error) {
	what := redisstore.Examination{
		Exam: e, Needs: commands, Key: "interlock-doctor-" + driver.NewID(), Channel: newChannel(), Common: true,
		Tokens: "tokens go on growing", Quorum: true,
	}
	each, away := make([][]driver.Finding, len(d.nodes)), make([]error, len(d.nodes))
	var all sync.WaitGroup
	for i, n := range d.nodes {
		all.Go(func() {
			away[i] = n.conn.EachMaster(ctx, func(do redisconn.DoFunc) (err error) {
				each[i], err = redisstore.ExamineServer(ctx, do, n.name, what)
				return err
			})
		})
	}
	all.Wait()
	votes, answered := d.votes(away)
	if u := d.members.Unmade(); u != nil {
		votes = unmade(u)
	}
	found := []driver.Finding{d.number(), votes}
	for _, some := range each {
		found = append(found, some...)
	}
	if answered < d.quorum {
		return found, redisconn.Unchanged(errors.Join(away...))
	}
	return found, nil
}

// number looks at how many masters there are. That the number is odd was looked at when the driver
// was made.
func (d *Driver) number() driver.Finding {
	f := driver.Finding{Code: "Q1", Title: "masters", Seen: fmt.Sprintf("there are %d: %d may fail", len(d.nodes), len(d.nodes)-d.quorum)}
	if len(d.nodes) == 1 {
		f.Level, f.Seen = driver.LevelWarn, "there is one"
		f.Why = "when it is away nobody can lock: one server is no quorum"
		f.Mend = "three or five masters on machines of their own; or redis://, which shares readers and permits, too"
	}
	return f
}

// unmade says that no set is there, and which one would be made. One that is on record and is
// another one is perhaps that of programs which do not run just now.
func unmade(u *membership.Unmade) driver.Finding {
	f := driver.Finding{Code: "Q2", Title: "votes", Seen: fmt.Sprintf(
		"no set of masters has been made yet: the first program that takes a lock makes one of %d masters with max_ttl %v", len(u.Set.Members), u.Set.MaxTTL)}
	if u.Old.Version == 0 {
		return f
	}
	f.Level = driver.LevelWarn
	f.Seen = fmt.Sprintf("%v are on record and have been out of use for longer than %v: the first program with this URL that takes a lock makes a new set of %d masters with max_ttl %v",
		u.Old, membership.Used(u.Old.MaxTTL), len(u.Set.Members), u.Set.MaxTTL)
	f.Why, f.Mend = "programs with the masters and the max_ttl on record would be refused from then on", "name the same masters and max_ttl in all programs"
	return f
}

// votes looks at which masters have a vote, of those that answered and the others.
func (d *Driver) votes(away []error) (f driver.Finding, answered int) {
	voters := 0
	var why []string
	for i, n := range d.nodes {
		err := away[i]
		if err == nil {
			answered++
			err = n.member.Err()
		}
		if err == nil {
			voters++
			continue
		}
		text := err.Error()
		for _, label := range []string{"redlock: ", n.name + ": ", driver.ErrNotSent.Error() + ": "} {
			text = strings.TrimPrefix(text, label)
		}
		why = append(why, n.name+": "+text)
	}
	f = driver.Finding{Code: "Q2", Title: "votes", Seen: fmt.Sprintf("%d of %d masters have a vote", voters, len(d.nodes))}
	if why == nil {
		return f, answered
	}
	f.Level, f.Seen = driver.LevelWarn, f.Seen+"; "+strings.Join(why, "; ")
	f.Why = "one master more that is away, and nobody can lock"
	if n := voters - d.quorum; n > 0 {
		f.Why = fmt.Sprintf("%d masters more that are away, and nobody can lock", n+1)
	}
	f.Mend = "bring it back; interlock masters says who waits for what, and with --give-up takes out what is gone for good"
	if voters < d.quorum {
		f.Level, f.Why = driver.LevelBad, "no majority can vote: no lock can be had"
	}
	return f, answered
}

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
)

// Examine implements driver.Examiner: it looks at each master as at a Redis of its own, and at whether enough of them have a vote.
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
	found := []driver.Finding{d.number()}
	votes, answered := d.votes(away)
	found = append(found, votes)
	for _, some := range each {
		found = append(found, some...)
	}
	if answered < d.quorum {
		return found, redisconn.Unchanged(errors.Join(away...))
	}
	return found, nil
}

// number looks at how many masters there are. That the number is odd was looked at when the driver was made.
func (d *Driver) number() driver.Finding {
	f := driver.Finding{Code: "Q1", Title: "masters", Seen: fmt.Sprintf("there are %d: %d may fail", len(d.nodes), len(d.nodes)-d.quorum)}
	if len(d.nodes) == 1 {
		f.Level, f.Seen = driver.LevelWarn, "there is one"
		f.Why = "when it is away nobody can lock: one server is no quorum"
		f.Mend = "three or five masters on machines of their own; or redis://, which shares readers and permits, too"
	}
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
			if s := n.standing.Load(); s == nil {
				err = errNoVote
			} else {
				err = s.err
			}
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

package redlock

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redisstore"
	"github.com/interlock-go/interlock/redisconn"
)

// membership is a set of masters as each of them has it on record. Its fingerprint is the vote of a master: a master that
// has lost its memory, or that belongs to another set by now, has not got it and gives itself to nobody.
type membership struct {
	version int64    // it grows when a member takes the place of another
	members []string // IDs of the masters, in order
	maxTTL  time.Duration
}

func (m membership) print() string {
	sum := sha256.Sum256([]byte(m.String()))
	return hex.EncodeToString(sum[:8])
}

// String names the set with all that must agree.
func (m membership) String() string {
	short := make([]string, len(m.members))
	for i, id := range m.members {
		short[i] = id[:min(len(id), 8)]
	}
	return fmt.Sprintf("%d masters (%s; version %d) with MaxTTL %v", len(m.members), strings.Join(short, " "), m.version, m.maxTTL)
}

func (m membership) same(o membership) bool {
	return m.version == o.version && m.maxTTL == o.maxTTL && slices.Equal(m.members, o.members)
}

// portrait is what one master says of itself.
type portrait struct {
	err error // it does not answer

	run     string // of this start of the server
	role    string
	master  string // of a replica
	cluster bool
	durable bool // it forgets nothing when it restarts

	record membership
	id     string // its own
	knew   string // run in the record
	wait   time.Duration
	vote   string
	used   bool // the set on record is in use
}

func (p *portrait) blank() bool { return p.err == nil && p.record.version == 0 }

// portray asks a master who it is, over one way to it.
func (n *node) portray(ctx context.Context) *portrait {
	p := &portrait{}
	var info map[string]string
	p.err = n.conn.EachMaster(ctx, func(do redisconn.DoFunc) (err error) {
		if info, err = redisstore.About(ctx, do); err == nil {
			p.durable, err = redisstore.Durable(ctx, do, info)
		}
		return err
	})
	if p.err = redisconn.Classify(p.err); p.err != nil {
		return p
	}
	p.run, p.role, p.cluster = info["run_id"], info["role"], info["cluster_enabled"] == "1"
	p.master = info["master_host"] + ":" + info["master_port"]
	if p.run == "" {
		p.err = errors.New("the server does not tell its run_id")
		return p
	}
	v, err := n.run.Run(ctx, redisconn.Call{Script: memberScript, Keys: memberKeys, Args: []string{"look"}, Behind: true})
	f, _ := v.([]any)
	if err != nil || len(f) != 9 {
		p.err = errors.Join(err, errors.New("the server does not tell what set of masters it belongs to"))
		return p
	}
	number := func(i int) int64 { x, _ := f[i].(int64); return x }
	text := func(i int) string { x, _ := f[i].(string); return x }
	p.record = membership{version: number(0), maxTTL: time.Duration(number(2)) * time.Millisecond}
	if members := text(1); members != "" {
		p.record.members = strings.Split(members, ",")
	}
	p.id, p.knew, p.vote = text(3), text(4), text(6)
	p.wait = time.Duration(number(5)-number(8)) * time.Millisecond
	p.used = number(7) > 0
	return p
}

// runID asks a master which start of the server it is.
func (n *node) runID(ctx context.Context) (run string, err error) {
	err = n.conn.EachMaster(ctx, func(do redisconn.DoFunc) error {
		info, err := redisstore.About(ctx, do, "server")
		run = info["run_id"]
		return err
	})
	return run, redisconn.Classify(err)
}

var memberKeys = []string{memberKey, voteKey, usedKey}

var errOvertaken = errors.New("another program has just changed what it has on record")

// enlist writes a master's record and what becomes of its vote, unless the record is not the one that p saw.
func (n *node) enlist(ctx context.Context, p *portrait, m membership, id, vote string) error {
	ms := func(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
	v, err := n.run.Run(ctx, redisconn.Call{Script: memberScript, Keys: memberKeys, Behind: true, Args: []string{
		vote, strconv.FormatInt(p.record.version, 10), p.knew,
		strconv.FormatInt(m.version, 10), strings.Join(m.members, ","), ms(m.maxTTL), id, p.run, m.print(),
		ms(rejoin(m.maxTTL)), ms(used(m.maxTTL)),
	}})
	if err == nil && v != int64(1) {
		err = fmt.Errorf("redlock: %s: %w: %w", n.name, driver.ErrNotSent, errOvertaken)
	}
	return err
}

// rejoin is how long a master that has lost its memory has no vote: whatever it forgot is over then, by its clock, and
// whoever counted on it has noticed.
func rejoin(maxTTL time.Duration) time.Duration {
	return maxTTL + maxTTL/50 + 10*time.Millisecond
}

// used is how long after its last use a set of masters counts as used. Within half of that, whoever uses it says so again.
func used(maxTTL time.Duration) time.Duration { return 3 * maxTTL }

// refuse says that masters cannot be used together, with both values.
func refuse(format string, values ...any) error {
	return fmt.Errorf("redlock: "+format+": %w", append(values, driver.ErrRefused)...)
}

// independent tells whether the masters that answer are masters, and different ones.
func (d *Driver) independent(all []*portrait) error {
	runs := map[string]*node{}
	for i, p := range all {
		n := d.nodes[i]
		switch other := runs[p.run]; {
		case p.err != nil:
		case p.role != "master":
			return refuse("%s is a %s of %s: want %d masters that know nothing of each other", n.name, p.role, p.master, len(d.nodes))
		case p.cluster:
			return refuse("%s is a node of a Cluster: want %d masters that know nothing of each other", n.name, len(d.nodes))
		case other != nil:
			return refuse("%s and %s are the same server, run_id %s: want %d different ones", other.name, n.name, p.run, len(d.nodes))
		default:
			runs[p.run] = n
		}
	}
	return nil
}

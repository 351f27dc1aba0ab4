package redlock

import (
	"cmp"
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

// membership is a set of masters as each of them has it on record. Its fingerprint and the master's own ID are the vote of a master:
// one that has lost its memory, that has another master's, or that belongs to another set by now, has not got it and gives itself to
// nobody.
type membership struct {
	version int64    // it grows when a member takes the place of another
	members []string // IDs of the masters, in order; vacated begins those that were given up
	maxTTL  time.Duration
}

// vote is that of one master of the set.
func (m membership) vote(id string) string {
	sum := sha256.Sum256([]byte(m.String() + id))
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

// vacated begins the place of a master that an operator gave up.
const vacated = "-"

// vacant counts the places whose master was given up.
func (m membership) vacant() (n int) {
	for _, id := range m.members {
		if strings.HasPrefix(id, vacated) {
			n++
		}
	}
	return n
}

func (m membership) same(o membership) bool {
	return m.version == o.version && m.maxTTL == o.maxTTL && slices.Equal(m.members, o.members)
}

// portrait is what one master says of itself.
type portrait struct {
	err     error // it does not answer
	unfit   error // it answers, and is no master of its own or of this set
	damaged error // it answers, and what it has on record was written by somebody else
	strayed bool  // its record is not its own, or was given up

	run     string // of this start of the server
	role    string
	master  string // of a replica
	cluster bool
	durable bool   // it forgets nothing when it restarts, and there is no copy that may take its place
	loaded  bool   // what it had when it started is what its log had
	logless bool   // it keeps no log
	evicts  string // by which policy it throws keys away when its memory is full; "" if by none
	past    string // of which data set it was a replica before; "" if it was none

	record   membership
	id       string // its own
	behind   bool   // the set has changed since the master last heard of it
	knew     string // run in the record
	kept     bool   // durable in the record
	knewPast string // past in the record
	until    int64  // in the record, when its wait is over, by its clock, in ms
	wait     time.Duration
	took     time.Duration // since the first master was asked
	vote     string
	used     bool  // the set on record is in use
	high     int64 // at least its largest counter
}

// away says why the master is none for now, if it is none.
func (p *portrait) away() error {
	return cmp.Or(p.err, p.unfit, p.damaged)
}

// portray asks a master who it is, over one way to it. All masters are asked since a time.
func (n *node) portray(ctx context.Context, since time.Time) *portrait {
	p := &portrait{}
	var info map[string]string
	p.err = n.conn.EachMaster(ctx, func(do redisconn.DoFunc) (err error) {
		if info, err = redisstore.About(ctx, do); err == nil {
			err = redisstore.Knows(ctx, do, commands)
		}
		if err == nil {
			p.durable, err = redisstore.Durable(ctx, do, info)
		}
		return err
	})
	if p.err = redisconn.Unchanged(p.err); p.err != nil {
		return p
	}
	p.durable = p.durable && info["connected_slaves"] == "0"
	p.loaded = redisstore.Loaded(info)
	p.run, p.role, p.cluster = info["run_id"], info["role"], info["cluster_enabled"] == "1"
	p.master = info["master_host"] + ":" + info["master_port"]
	p.past = strings.Trim(info["master_replid2"], "0")
	p.logless = info["aof_enabled"] == "0"
	if p.evicts = info["maxmemory_policy"]; p.evicts == "noeviction" {
		p.evicts = ""
	}
	if p.run == "" {
		p.err = errors.New("the server does not tell its run_id")
		return p
	}
	v, err := n.run.Run(ctx, redisconn.Call{Script: memberScript, Keys: memberKeys, Args: []string{"look"}, Behind: true})
	f, _ := v.([]any)
	if final(err) {
		p.damaged = err
		return p
	}
	if err != nil || len(f) != 12 {
		p.err = errors.Join(redisconn.Unchanged(err), errors.New("the server does not tell what set of masters it belongs to"))
		return p
	}
	number := func(i int) int64 { x, _ := f[i].(int64); return x }
	text := func(i int) string { x, _ := f[i].(string); return x }
	p.record = membership{version: number(0), maxTTL: time.Duration(number(2)) * time.Millisecond}
	if members := text(1); members != "" {
		p.record.members = strings.Split(members, ",")
	}
	p.id, p.knew, p.vote = text(3), text(4), text(6)
	p.until = number(5)
	p.wait, p.took = time.Duration(p.until-number(8))*time.Millisecond, time.Since(since)
	p.used = number(7) > 0
	p.kept, p.knewPast = text(9) == "1", text(10)
	p.high, _ = strconv.ParseInt(text(11), 10, 64)
	return p
}

var memberKeys = []string{memberKey, voteKey, usedKey, floorKey, highKey}

var errOvertaken = errors.New("another program has just changed what it has on record")

// enlist writes a master's record and what becomes of its vote, unless the record is not the one that p saw. Tokens that the master
// draws from now on are above floor. A driver that looks writes nothing.
func (n *node) enlist(ctx context.Context, p *portrait, m membership, id, vote string, floor int64) error {
	if n.d.looks {
		return nil
	}
	ms := func(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
	v, err := n.run.Run(ctx, redisconn.Call{Script: memberScript, Keys: memberKeys, Behind: true, Args: []string{
		vote, strconv.FormatInt(p.record.version, 10), p.knew,
		strconv.FormatInt(m.version, 10), strings.Join(m.members, ","), ms(m.maxTTL), id, p.run, m.vote(id),
		ms(rejoin(m.maxTTL)), ms(used(m.maxTTL)), digit(p.durable), p.past, strconv.FormatInt(floor, 10),
		strconv.FormatInt(p.until, 10),
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

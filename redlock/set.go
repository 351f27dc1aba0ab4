package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// agree finds the set that the masters belong to, or founds it, and has each take its place there. errs says why a master
// has no vote.
func (d *surveyor) agree(ctx context.Context, all []*portrait, errs []error) (membership, error) {
	d.unmade.Store(nil)
	opening := d.set.Load() == nil
	if err := d.independent(all, opening); err != nil {
		return membership{}, err
	}
	var damaged []error
	var missing error
	there := 0
	var set membership
	for i, p := range all {
		switch err := p.away(); {
		case err != nil && p.damaged != nil:
			damaged = append(damaged, fmt.Errorf("%s: %w", d.nodes[i].name, err))
		case err != nil:
			missing = cmp.Or(missing, fmt.Errorf("%s: %w", d.nodes[i].name, err))
		default:
			there++
			if p.record.version > set.version {
				set = p.record
			}
		}
	}
	if there < d.quorum {
		return set, d.tooFew(there, len(damaged), damaged, missing)
	}
	d.tellApart(all, set)
	strange := set.maxTTL != d.options.MaxTTL || len(set.members) != len(d.nodes)
	known, blanks := 0, 0
	for _, p := range all {
		switch {
		case p.away() != nil:
		case p.condition() == blank:
			blanks++
		case slices.Contains(set.members, p.id):
			known++
		}
	}
	if blanks+known < there { // some belong to another set
		strange = strange || opening || known < d.quorum
		if !strange {
			d.exclude(all, set)
		}
	}
	inUse := slices.ContainsFunc(all, func(p *portrait) bool { return p.used })
	switch {
	case strange, known == 0, known < d.quorum && !inUse:
		return d.found(ctx, all, errs, set)
	case known < d.quorum:
		err := fmt.Errorf("redlock: %d of %d masters know that they are %v, want %d or more: a new set begins %v after the last use of this one",
			known, len(all), set, d.quorum, used(set.maxTTL))
		if !slices.ContainsFunc(all, func(p *portrait) bool { return p.condition() == blank && !slices.Contains(set.members, p.run) }) {
			err = &founding{err}
		}
		return set, err
	}
	return d.complete(ctx, all, errs, set)
}

// tellApart has at most one master count with each ID. A server that was a copy of another one has the other one's record: its own
// memory is lost. One that was given up has lost its place, and nobody has counted on its memory since.
func (d *surveyor) tellApart(all []*portrait, set membership) {
	owner := map[string]int{}
	for i, p := range all {
		if p.away() != nil || p.record.version == 0 {
			continue
		}
		other, twice := owner[p.id]
		switch {
		case slices.Contains(set.members, vacated+p.id):
			p.strayed = true
		case !twice:
			owner[p.id] = i
		case p.knew == p.run, all[other].knew != all[other].run && d.nodes[i].member == p.id:
			owner[p.id], all[other].strayed = i, true
		default:
			p.strayed = true
		}
	}
}

// exclude has masters of other sets count as not there. A majority knows this one, and goes on.
func (d *surveyor) exclude(all []*portrait, set membership) {
	for i, p := range all {
		if p.away() == nil && p.condition() != blank && !slices.Contains(set.members, p.id) {
			p.unfit = refuse("%s belongs to %v, which is not the set of the others", d.nodes[i].name, p.record)
		}
	}
}

// founding is the error of a program that meets a set which some masters know, and the others not yet, although none has
// restarted since: another program enlists them one after the other just now. Or they were emptied by hand, which looks the
// same and lasts.
type founding struct{ error }

// Unwrap returns what is said of it if it lasts.
func (f *founding) Unwrap() error { return f.error }

// unmade is the set that the next program would make that uses the masters, and the one that is on record there, out of use; with version 0
// there is none.
type unmade struct{ old, set membership }

var errUnmade = fmt.Errorf("%w: no set of masters has been made yet", errNoVote)

// found makes a new set of the masters. All must answer, and none may belong to another set that is in use. A driver that looks only notes
// which one it would make.
func (d *surveyor) found(ctx context.Context, all []*portrait, errs []error, old membership) (membership, error) {
	set := membership{version: old.version + 1, maxTTL: d.options.MaxTTL}
	for i, p := range all {
		if err := p.away(); err != nil {
			return set, fmt.Errorf("redlock: %s: %w: a new set of masters begins when all of them answer", d.nodes[i].name, err)
		}
		set.members = append(set.members, p.run)
	}
	slices.Sort(set.members)
	for i, p := range all {
		if p.used && p.record.version > 0 {
			return set, refuse("%s belongs to %v, which are in use; this program has %d masters with MaxTTL %v: end the programs that use the others and wait for %v",
				d.nodes[i].name, p.record, len(d.nodes), set.maxTTL, used(p.record.maxTTL))
		}
	}
	if d.looks {
		d.unmade.Store(&unmade{old: old, set: set})
		for i := range errs {
			errs[i] = errUnmade
		}
		return set, nil
	}
	// Where this program has met the masters before, and all of them are blank, they have lost their memory: whoever held goes on.
	vote := "give"
	if d.set.Load() != nil && old.version == 0 {
		vote = "wait"
	}
	for i, n := range d.nodes {
		switch errs[i] = n.enlist(ctx, all[i], set, all[i].run, vote, highest(all)); {
		case errs[i] != nil:
			d.resurvey() // another program founds it, too
		case vote == "wait":
			errs[i] = fmt.Errorf("it has lost its memory, and has no vote for %v", rejoin(set.maxTTL))
		}
	}
	return set, nil
}

// complete brings the masters that were away up to date. One that has lost its memory takes a new place in the set, which
// those that know the set must hear of first: from then on programs that count on another master in its place get no
// majority. It waits until whatever it has forgotten is over.
//
// The set has a new version, too, when a master that kept everything has stopped to write its log: when it restarts with the log that it
// has, the others know of something that it does not.
func (d *surveyor) complete(ctx context.Context, all []*portrait, errs []error, set membership) (membership, error) {
	before := set
	for _, p := range all {
		p.behind = p.record.version < set.version
	}
	set, homeless := d.house(all, d.vacate(all, set))
	stopped := func(p *portrait) bool { return p.away() == nil && p.kept && p.logless && p.condition() == voting }
	if !set.same(before) || slices.ContainsFunc(all, stopped) {
		set.version++
	}
	conditions := make([]condition, len(all))
	for i, p := range all {
		conditions[i] = p.condition()
	}
	why, heard := judge(conditions, set.vacant(), d.quorum), 0
	for i, p := range all {
		if err := p.away(); err != nil {
			errs[i] = err
		} else if conditions[i] != blank {
			var knows bool
			if knows, errs[i] = d.nodes[i].update(ctx, p, set, why[i], highest(all)); knows {
				heard++
			}
		}
	}
	if len(d.giveUp) > 0 && heard < d.quorum && d.refusal == nil {
		d.refusal = fmt.Errorf("redlock: %d of %d masters have it on record, want %d: give up again", heard, len(all), d.quorum)
	}
	for i, p := range all {
		switch {
		case conditions[i] != blank:
		case homeless[i]:
			errs[i] = errors.New("it has lost its memory, and others do not answer: whose place it had is not known")
		case heard < d.quorum:
			errs[i] = fmt.Errorf("it has lost its memory, and %d of %d masters know its new place, want %d", heard, len(all), d.quorum)
		default:
			if errs[i] = d.nodes[i].enlist(ctx, p, set, p.run, "wait", 0); errs[i] == nil {
				errs[i] = fmt.Errorf("it has lost its memory, and has no vote for %v", rejoin(set.maxTTL))
			}
		}
	}
	if d.looks { // nobody has heard of another one
		return before, nil
	}
	return set, nil
}

// house gives the masters that have lost their memory places of the set which nobody has: that which this program knows it
// had, or any if all that are free belonged to such masters, or that of a master that was given up. It reports who got none.
func (d *surveyor) house(all []*portrait, set membership) (membership, []bool) {
	var free []string // places
	blanks := 0
	for _, id := range set.members {
		if !slices.ContainsFunc(all, func(p *portrait) bool { return p.away() == nil && p.condition() != blank && p.id == id }) {
			free = append(free, id)
		}
	}
	for _, p := range all {
		if p.condition() == blank {
			blanks++
		}
	}
	homeless := make([]bool, len(all))
	members := slices.Clone(set.members)
	for i, p := range all {
		if p.condition() != blank {
			continue
		}
		at := slices.IndexFunc(free, func(id string) bool { return strings.TrimPrefix(id, vacated) == d.nodes[i].member })
		if at < 0 && len(free) == blanks {
			at = 0
		}
		if at < 0 {
			at = slices.IndexFunc(free, func(id string) bool { return strings.HasPrefix(id, vacated) })
		}
		if at < 0 {
			homeless[i] = true
			continue
		}
		members[slices.Index(members, free[at])] = p.run
		free = slices.Delete(free, at, at+1)
		blanks--
	}
	slices.Sort(members)
	set.members = members
	return set, homeless
}

// update brings one master's record up to date, gives it its vote if why is nil, and has it wait if it has to. It reports whether
// the master knows the set then, and why it has no vote, if it has none.
func (n *node) update(ctx context.Context, p *portrait, set membership, why error, floor int64) (knows bool, _ error) {
	what, current := "stay", p.record.same(set) && p.knew == p.run && p.kept == p.durable && p.past == p.knewPast
	switch p.condition() {
	case voting:
		what, floor = "give", 0 // it has lost nothing
		current = current && p.vote == set.vote(p.id)
	case stale:
		what, current = "wait", false
		why = fmt.Errorf("it has restarted and may have forgotten, and has no vote for %v", rejoin(set.maxTTL))
	case recovering:
		why = fmt.Errorf("it had lost its memory, and has no vote for %v", (p.wait + p.took).Round(time.Millisecond))
	case ready:
		switch {
		case why == nil && n.d.looks:
			why = errors.New("it has waited for what it may have forgotten: the next program that uses the masters gives it its vote")
		case why == nil:
			what, current = "give", false
		}
	}
	if !current {
		if err := n.enlist(ctx, p, set, p.id, what, floor); err != nil {
			return false, err
		}
	}
	return true, why
}

// highest is a counter above which every token is new, as far as the masters that answer know.
func highest(all []*portrait) (high int64) {
	for _, p := range all {
		if p.away() == nil {
			high = max(high, p.high)
		}
	}
	return roundUp(high)
}

// independent finds out which of the masters that answer are none, or the same as another one. A program that opens is refused: it
// names something else than it means. Later such a master counts as one that is not there, and the others go on.
func (d *surveyor) independent(all []*portrait, opening bool) error {
	runs := map[string]int{}
	for i, p := range all {
		n := d.nodes[i]
		other, twice := runs[p.run]
		switch {
		case p.err != nil:
		case p.role != "master":
			p.unfit = refuse("%s is a %s of %s: want %d masters that know nothing of each other", n.name, p.role, p.master, len(d.nodes))
		case p.cluster:
			p.unfit = refuse("%s is a node of a Cluster: want %d masters that know nothing of each other", n.name, len(d.nodes))
		case twice:
			same := i
			if s := n.standing.Load(); s != nil && s.run == p.run { // it is the other address that has moved
				same, runs[p.run] = other, i
			}
			all[same].unfit = refuse("%s and %s are the same server, run_id %s: want %d different ones", d.nodes[other].name, n.name, p.run, len(d.nodes))
		default:
			runs[p.run] = i
		}
		if opening && p.unfit != nil {
			return p.unfit
		}
	}
	return nil
}

// vacate takes the masters that are to be given up out of the set. Whose place is whose nobody can tell who has not met them, but all
// that are away leave theirs.
func (d *surveyor) vacate(all []*portrait, set membership) membership {
	if len(d.giveUp) == 0 {
		return set
	}
	there := map[string]bool{}
	for i, p := range all {
		if gone := slices.Contains(d.giveUp, i); gone != (p.away() != nil) {
			d.refusal = refuse("%s does not answer either, and whose place is whose cannot be told: give up all that are away, or none", d.nodes[i].name)
			if gone {
				d.refusal = refuse("%s answers, so it is not given up", d.nodes[i].name)
			}
			return set
		}
		there[p.id] = p.away() == nil && p.condition() != blank
	}
	members := slices.Clone(set.members)
	for i, id := range members {
		if !there[id] && id[:1] != vacated {
			members[i] = vacated + id
		}
	}
	slices.Sort(members)
	set.members = members
	return set
}

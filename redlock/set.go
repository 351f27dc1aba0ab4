package redlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// agree finds the set that the masters belong to, or founds it, and has each take its place there. errs says why a master
// has no vote.
func (d *Driver) agree(ctx context.Context, all []*portrait, errs []error) (membership, error) {
	if err := d.independent(all); err != nil {
		return membership{}, err
	}
	var silent []error
	var set membership
	for i, p := range all {
		if p.err != nil {
			silent = append(silent, fmt.Errorf("%s: %w", d.nodes[i].name, p.err))
		} else if p.record.version > set.version {
			set = p.record
		}
	}
	if answered := len(all) - len(silent); answered < d.quorum {
		return set, fmt.Errorf("redlock: %d of %d masters answered, want %d or more: %w", answered, len(all), d.quorum, silent[0])
	}
	strange := set.maxTTL != d.options.MaxTTL || len(set.members) != len(d.nodes)
	known := 0
	for _, p := range all {
		switch {
		case p.err != nil || p.blank():
		case slices.Contains(set.members, p.id):
			known++
		default:
			strange = true
		}
	}
	inUse := slices.ContainsFunc(all, func(p *portrait) bool { return p.used })
	switch {
	case strange, known == 0, known < d.quorum && !inUse:
		return d.found(ctx, all, errs, set)
	case known < d.quorum:
		err := fmt.Errorf("redlock: %d of %d masters know that they are %v, want %d or more: a new set begins %v after the last use of this one",
			known, len(all), set, d.quorum, used(set.maxTTL))
		if !slices.ContainsFunc(all, func(p *portrait) bool { return p.blank() && !slices.Contains(set.members, p.run) }) {
			err = &founding{err}
		}
		return set, err
	}
	return d.complete(ctx, all, errs, set)
}

// founding is the error of a program that meets a set which some masters know, and the others not yet, although none has
// restarted since: another program enlists them one after the other just now. Or they were emptied by hand, which looks the
// same and lasts.
type founding struct{ error }

// Unwrap returns what is said of it if it lasts.
func (f *founding) Unwrap() error { return f.error }

// found makes a new set of the masters. All must answer, and none may belong to another set that is in use.
func (d *Driver) found(ctx context.Context, all []*portrait, errs []error, old membership) (membership, error) {
	set := membership{version: old.version + 1, maxTTL: d.options.MaxTTL}
	for i, p := range all {
		if p.err != nil {
			return set, fmt.Errorf("redlock: %s: %w: a new set of masters begins when all of them answer", d.nodes[i].name, p.err)
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
	if err := d.lift(ctx, all, -1); err != nil {
		return set, err
	}
	for i, n := range d.nodes {
		if errs[i] = n.enlist(ctx, all[i], set, all[i].run, "give"); errs[i] != nil {
			d.resurvey() // another program founds it, too
		}
	}
	return set, nil
}

// complete brings the masters that were away up to date. One that has lost its memory takes a new place in the set, which
// those that know the set must hear of first: from then on programs that count on another master in its place get no
// majority. It waits until whatever it has forgotten is over.
func (d *Driver) complete(ctx context.Context, all []*portrait, errs []error, set membership) (membership, error) {
	before := set
	set, homeless := d.house(all, set)
	if !set.same(before) {
		set.version++
	}
	heard := 0
	for i, p := range all {
		if p.err != nil || p.blank() {
			continue
		}
		var done bool
		if done, errs[i] = d.refresh(ctx, i, all, set); done {
			heard++
		}
	}
	for i, p := range all {
		if p.err != nil || !p.blank() {
			continue
		}
		if homeless[i] {
			errs[i] = errors.New("it has lost its memory, and others do not answer: whose place it had is not known")
		} else if heard < d.quorum {
			errs[i] = fmt.Errorf("it has lost its memory, and %d of %d masters know its new place, want %d", heard, len(all), d.quorum)
		} else if errs[i] = d.nodes[i].enlist(ctx, p, set, p.run, "wait"); errs[i] == nil {
			errs[i] = fmt.Errorf("it has lost its memory, and has no vote for %v", rejoin(set.maxTTL))
		}
	}
	return set, nil
}

// house gives the masters that have lost their memory places of the set which nobody has: that which this program knows it
// had, or any if all that are free belonged to such masters. It reports who got none.
func (d *Driver) house(all []*portrait, set membership) (membership, []bool) {
	var free []string // places
	blank := 0
	for _, id := range set.members {
		if !slices.ContainsFunc(all, func(p *portrait) bool { return p.err == nil && p.id == id }) {
			free = append(free, id)
		}
	}
	for _, p := range all {
		if p.blank() {
			blank++
		}
	}
	homeless := make([]bool, len(all))
	members := slices.Clone(set.members)
	for i, p := range all {
		if !p.blank() {
			continue
		}
		at := slices.Index(free, d.nodes[i].member)
		if at < 0 && len(free) == blank {
			at = 0
		}
		if at < 0 {
			homeless[i] = true
			continue
		}
		members[slices.Index(members, free[at])] = p.run
		free = slices.Delete(free, at, at+1)
		blank--
	}
	slices.Sort(members)
	set.members = members
	return set, homeless
}

// refresh brings one master's record up to date. It reports whether that is done, and why the master has no vote, if it has
// none.
func (d *Driver) refresh(ctx context.Context, i int, all []*portrait, set membership) (done bool, err error) {
	n, p := d.nodes[i], all[i]
	forgot := p.knew != p.run && !p.durable
	switch {
	case forgot: // it has restarted with a memory that may be old
		if err := n.enlist(ctx, p, set, p.id, "wait"); err != nil {
			return false, err
		}
		return true, fmt.Errorf("it has restarted and may have forgotten, and has no vote for %v", rejoin(set.maxTTL))
	case p.vote != "" && p.knew == p.run && p.record.same(set) && p.vote == set.print():
		return true, nil
	case p.vote != "":
		err := n.enlist(ctx, p, set, p.id, "give")
		return err == nil, err
	case p.wait > 0:
		if !p.record.same(set) {
			if err := n.enlist(ctx, p, set, p.id, "stay"); err != nil {
				return false, err
			}
		}
		return true, fmt.Errorf("it had lost its memory, and has no vote for %v", p.wait)
	}
	if err := d.lift(ctx, all, i); err != nil {
		return false, err
	}
	err = n.enlist(ctx, p, set, p.id, "give")
	return err == nil, err
}

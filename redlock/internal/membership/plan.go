package membership

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// bootstrap makes a new set of the masters. All must answer, and none may belong to another set
// that is in use.
func (d *decision) bootstrap(old Set) Plan {
	set := Set{Version: old.Version + 1, MaxTTL: d.MaxTTL}
	for _, m := range d.masters {
		if err := m.away(); err != nil {
			return Plan{Err: fmt.Errorf("redlock: %s: %w: a new set of masters begins when all of them answer", m.Name, err)}
		}
		set.Members = append(set.Members, m.Run)
	}
	slices.Sort(set.Members)
	for _, m := range d.masters {
		if m.Used && m.Record.Version > 0 {
			return Plan{Err: refuse("%s belongs to %v, which are in use; this program has %d masters with MaxTTL %v: end the programs that use the others and wait for %v",
				m.Name, m.Record.Set, len(d.masters), set.MaxTTL, Used(m.Record.MaxTTL))}
		}
	}
	plan := Plan{Set: set, Masters: make([]Step, len(d.masters))}
	if d.Looks {
		plan.Unmade = &Unmade{Old: old, Set: set}
		for i := range plan.Masters {
			plan.Masters[i].Why = errUnmade
		}
		return plan
	}
	// Where this program has met the masters before, and all of them are blank, they have lost
	// their memory: who held goes on.
	vote, why := Give, error(nil)
	if d.Known && old.Version == 0 {
		vote, why = Wait, lost(set)
	}
	for i, m := range d.masters {
		plan.Masters[i] = Step{Write: Write{Action: Bootstrap, Set: set, ID: m.Run, Vote: vote, Floor: d.highest()}, Why: why}
	}
	return plan
}

// lost says that a master has just begun to wait, since it has lost its memory.
func lost(set Set) error {
	return fmt.Errorf("it has lost its memory, and has no vote for %v", Rejoin(set.MaxTTL))
}

// reconcile brings the masters that were away up to date. One that has lost its memory gets a new
// place in the set, which those that know the set must hear of first: from then on programs that
// count on another master in its place get no majority. It waits until whatever it has forgotten is
// over.
//
// The set has a new version, too, when a master that kept everything has stopped to write its log:
// when it restarts with the log that it has, the others know of something that it does not.
func (d *decision) reconcile(set Set) Plan {
	for _, m := range d.masters {
		m.behind = m.Record.Version < set.Version
	}
	plan := Plan{Set: set, Masters: make([]Step, len(d.masters))}
	members, refusal := d.vacate(set)
	members, places := d.reassign(members)
	stopped := func(m *master) bool {
		return m.away() == nil && m.Record.Durable && m.Logless && m.state() == Voting
	}
	next := Set{Version: set.Version, Members: members, MaxTTL: set.MaxTTL}
	if !next.same(set) || slices.ContainsFunc(d.masters, stopped) {
		next.Version++
	}
	plan.GivesUp, plan.Refusal = len(d.GiveUp) > 0 && refusal == nil, refusal
	states := make([]State, len(d.masters))
	for i, m := range d.masters {
		states[i] = m.state()
	}
	why := elect(states, next.vacant(), d.quorum)
	for i, m := range d.masters {
		step := &plan.Masters[i]
		switch {
		case m.away() != nil:
			step.Why = m.away()
		case states[i] != Blank:
			step.Write, step.Why = d.update(m, next, why[i])
		case !places[i]:
			step.Why = errors.New("it has lost its memory, and others do not answer: whose place it had is not known")
		default:
			step.Write, step.Why = Write{Action: Register, Set: next, ID: m.Run, Vote: Wait}, lost(next)
		}
	}
	if !d.Looks { // else nobody hears of another one
		plan.Set = next
	}
	return plan
}

// update brings one master's record up to date, gives it its vote if why is nil, and lets it wait
// if it has to. It returns why the master has no vote then, if it has none.
func (d *decision) update(m *master, set Set, why error) (Write, error) {
	w := Write{Action: Reconcile, Set: set, ID: m.Record.ID, Vote: Stay, Floor: d.highest()}
	current := m.Record.same(set) && m.Record.Run == m.Run && m.Record.Durable == m.Durable && m.Past == m.Record.Past
	switch m.state() {
	case Voting:
		w.Vote, w.Floor = Give, 0 // it has lost nothing
		current = current && m.Vote == set.Vote(w.ID)
	case Stale:
		w.Vote, current = Wait, false
		why = fmt.Errorf("it has restarted and may have forgotten, and has no vote for %v", Rejoin(set.MaxTTL))
	case Waiting:
		why = fmt.Errorf("it had lost its memory, and has no vote for %v", (m.Wait + m.Took).Round(time.Millisecond))
	case Ready:
		switch {
		case why == nil && d.Looks:
			why = errors.New("it has waited for what it may have forgotten: the next program that uses the masters gives it its vote")
		case why == nil:
			w.Vote, current = Give, false
		}
	}
	if current {
		w = Write{Action: Keep}
	}
	return w, why
}

// reassign gives the masters that have lost their memory places of the set which nobody has: that
// which this program knows a master had, or any if all that are free belonged to such masters, or
// that of a master that was given up. It returns the new members, and which masters have a place
// among them.
func (d *decision) reassign(members []string) (_ []string, placed []bool) {
	var free []string // places
	blanks := 0
	for _, id := range members {
		if !slices.ContainsFunc(d.masters, func(m *master) bool { return m.away() == nil && !m.blank() && m.Record.ID == id }) {
			free = append(free, id)
		}
	}
	for _, m := range d.masters {
		if m.blank() {
			blanks++
		}
	}
	placed = make([]bool, len(d.masters))
	members = slices.Clone(members)
	for i, m := range d.masters {
		if placed[i] = !m.blank(); placed[i] {
			continue
		}
		at := slices.IndexFunc(free, func(id string) bool { return strings.TrimPrefix(id, vacated) == m.Was })
		if at < 0 && len(free) == blanks {
			at = 0
		}
		if at < 0 {
			at = slices.IndexFunc(free, func(id string) bool { return strings.HasPrefix(id, vacated) })
		}
		if at < 0 {
			continue
		}
		placed[i] = true
		members[slices.Index(members, free[at])] = m.Run
		free = slices.Delete(free, at, at+1)
		blanks--
	}
	slices.Sort(members)
	return members, placed
}

// vacate returns the members without the masters that are to be given up, or why they are not.
// Whose place is whose nobody can tell who has not met them, but all that are away leave theirs.
func (d *decision) vacate(set Set) (members []string, refusal error) {
	if len(d.GiveUp) == 0 {
		return set.Members, nil
	}
	there := map[string]bool{}
	for i, m := range d.masters {
		switch gone := slices.Contains(d.GiveUp, i); {
		case gone && m.away() == nil:
			return set.Members, refuse("%s answers, so it is not given up", m.Name)
		case !gone && m.away() != nil:
			return set.Members, refuse("%s does not answer either, and whose place is whose cannot be told: give up all that are away, or none", m.Name)
		}
		there[m.Record.ID] = m.away() == nil && !m.blank()
	}
	members = slices.Clone(set.Members)
	for i, id := range members {
		if !there[id] && id[:1] != vacated {
			members[i] = vacated + id
		}
	}
	slices.Sort(members)
	return members, nil
}

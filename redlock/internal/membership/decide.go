package membership

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Question is what [Decide] decides from.
type Question struct {
	Masters []Seen
	MaxTTL  time.Duration // of this program
	Known   bool          // this program knows a set; else it is about to open
	Looks   bool          // it writes nothing
	GiveUp  []int         // masters that an operator gives up, by index
}

// Seen is one master as this program sees it.
type Seen struct {
	Info
	Name string // for people
	Was  string // its ID in the set when it was last met, or ""
	Ran  string // the run_id that it had then, or ""
}

// Plan is what is to be done.
type Plan struct {
	Set     Set // that the masters belong to when it is done
	Masters []Step
	Err     error   // why there is nothing to do: the set as a whole is of no use
	Passing bool    // Err is of a set that another program registers just now, or that was emptied by hand, which lasts
	Unmade  *Unmade // what a program that looks would bootstrap
	GivesUp bool    // masters are given up, if a majority is told
	Refusal error   // why they are not
}

// Step is what becomes of one master.
type Step struct {
	State State
	Away  error  // why the master is none for now
	ID    string // its own in the set from now on; "" if that is not known
	Write
	Why error // why it has no vote when that is written
}

// Action is what a Step does.
type Action uint8

// Actions. A master that is registered is told last, and only if a majority knows the set by then.
const (
	Nothing   Action = iota
	Keep             // it knows the set already
	Bootstrap        // it gets the first record of a new set
	Reconcile        // its record is brought up to date
	Register         // it has lost its memory, and gets a record with a place in the set
)

// Write is what an action writes.
type Write struct {
	Action Action
	Set    Set
	ID     string
	Vote   Vote
	Floor  int64 // tokens that it draws from now on are above; 0 if it goes on from what it has
}

// Vote is what becomes of a master's vote.
type Vote string

// What becomes of a vote, in the words of the script.
const (
	Give Vote = "give"
	Stay Vote = "stay" // as it is
	Wait Vote = "wait" // it has none, and begins to wait for it
)

// Unmade is the set that the next program would make that uses the masters, and the one that is on
// record there, out of use; with version 0 there is none.
type Unmade struct{ Old, Set Set }

var errUnmade = fmt.Errorf("%w: no set of masters has been made yet", errNoVote)

// master is what Decide finds out about one master.
type master struct {
	Seen
	unfit  error // it answers, and is no master of its own or of this set
	copied bool  // its record is another master's, or its place was given up
	behind bool  // the set has changed since the master last heard of it
}

// away returns why the master is none for now.
func (m *master) away() error { return cmp.Or(m.Err, m.unfit, m.Damaged) }

// blank reports whether the master is there, and knows of no set.
func (m *master) blank() bool { return m.state() == Blank }

// decision is a Plan in the making.
type decision struct {
	Question
	masters []*master
	quorum  int
}

// Decide says what set the masters belong to, what is to be written to each of them, and why those
// that have no vote then have none. It asks nobody, and changes nothing.
func Decide(q Question) Plan {
	d := &decision{Question: q, quorum: Majority(len(q.Masters))}
	for _, s := range q.Masters {
		d.masters = append(d.masters, &master{Seen: s})
	}
	plan := d.agree()
	if plan.Masters == nil {
		plan.Masters = make([]Step, len(d.masters))
	}
	for i, m := range d.masters {
		step := &plan.Masters[i]
		step.State, step.Away = m.state(), m.away()
		switch {
		case step.Away != nil || plan.Err != nil:
		case !m.copied && plan.Set.has(m.Record.ID):
			step.ID = m.Record.ID
		case plan.Set.has(m.Run):
			step.ID = m.Run
		}
	}
	return plan
}

// agree finds the set that the masters belong to, and decides between a new one and that.
func (d *decision) agree() Plan {
	if err := d.independent(); err != nil {
		return Plan{Err: err}
	}
	set, there, err := d.newest()
	if err != nil {
		return Plan{Err: err}
	}
	d.distinguish(set)
	strange := set.MaxTTL != d.MaxTTL || len(set.Members) != len(d.masters)
	known, blanks, unmet := 0, 0, false
	for _, m := range d.masters {
		switch {
		case m.away() != nil:
		case m.blank():
			blanks++
			unmet = unmet || !set.has(m.Run)
		case set.has(m.Record.ID):
			known++
		}
	}
	if blanks+known < there { // some belong to another set
		strange = strange || !d.Known || known < d.quorum
		if !strange {
			d.exclude(set)
		}
	}
	inUse := slices.ContainsFunc(d.masters, func(m *master) bool { return m.Used })
	switch {
	case strange, known == 0, known < d.quorum && !inUse:
		return d.bootstrap(set)
	case known < d.quorum:
		return Plan{
			Err: fmt.Errorf("redlock: %d of %d masters know that they are %v, want %d or more: a new set begins %v after the last use of this one",
				known, len(d.masters), set, d.quorum, Used(set.MaxTTL)),
			Passing: !unmet,
		}
	}
	return d.reconcile(set)
}

// independent finds out which of the masters that answer are none, or the same as another one. A
// program that opens is refused: it names something else than it means. Later such a master counts
// as one that is not there, and the others go on.
func (d *decision) independent() error {
	runs := map[string]*master{}
	for _, m := range d.masters {
		other, twice := runs[m.Run]
		switch {
		case m.Err != nil:
		case m.Role != "master":
			m.unfit = refuse("%s is a %s of %s: want %d masters that know nothing of each other", m.Name, m.Role, m.Upstream, len(d.masters))
		case m.Cluster:
			m.unfit = refuse("%s is a node of a Cluster: want %d masters that know nothing of each other", m.Name, len(d.masters))
		case twice:
			same := m
			if m.Ran == m.Run { // it is the other address that has moved
				same, runs[m.Run] = other, m
			}
			same.unfit = refuse("%s and %s are the same server, run_id %s: want %d different ones", other.Name, m.Name, m.Run, len(d.masters))
		default:
			runs[m.Run] = m
		}
		if !d.Known && m.unfit != nil {
			return m.unfit
		}
	}
	return nil
}

// newest returns the set with the highest version that a master has on record, and how many masters
// are there. The error says that they are too few.
func (d *decision) newest() (set Set, there int, _ error) {
	var damaged []error
	var missing error
	for _, m := range d.masters {
		switch err := m.away(); {
		case err != nil && m.Damaged != nil:
			damaged = append(damaged, fmt.Errorf("%s: %w", m.Name, err))
		case err != nil:
			missing = cmp.Or(missing, fmt.Errorf("%s: %w", m.Name, err))
		default:
			there++
			if m.Record.Version > set.Version {
				set = m.Record.Set
			}
		}
	}
	if there < d.quorum {
		return set, there, TooFew(len(d.masters), there, len(damaged), damaged, missing)
	}
	return set, there, nil
}

// distinguish lets at most one master count with each ID. A server that was a copy of another one
// has the other one's record: its own memory is lost. One that was given up has lost its place, and
// nobody has counted on its memory since.
func (d *decision) distinguish(set Set) {
	owner := map[string]*master{}
	for _, m := range d.masters {
		id := m.Record.ID
		if m.away() != nil || m.Record.Version == 0 {
			continue
		}
		other, twice := owner[id]
		switch {
		case set.has(vacated + id):
			m.copied = true
		case !twice:
			owner[id] = m
		case m.Record.Run == m.Run, other.Record.Run != other.Run && m.Was == id:
			owner[id], other.copied = m, true
		default:
			m.copied = true
		}
	}
}

// exclude lets masters of other sets count as not there. A majority knows this one, and goes on.
func (d *decision) exclude(set Set) {
	for _, m := range d.masters {
		if m.away() == nil && !m.blank() && !set.has(m.Record.ID) {
			m.unfit = refuse("%s belongs to %v, which is not the set of the others", m.Name, m.Record.Set)
		}
	}
}

// highest is a counter above which every token is new, as far as the masters that answer know.
func (d *decision) highest() (high int64) {
	for _, m := range d.masters {
		if m.away() == nil {
			high = max(high, m.High)
		}
	}
	return (high + stride - 1) / stride * stride
}

// stride divides the counter of every grant, as in take.lua.
const stride = 64

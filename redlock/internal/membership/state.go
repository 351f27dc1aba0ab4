package membership

import (
	"errors"
	"fmt"
)

// State is that of a master in its set, by what it says of itself.
type State uint8

// States of a master.
const (
	Silent  State = iota // it did not answer: it may be anything
	Unfit                // it is no master of its own, or of another set, or its record is damaged
	Blank                // it knows of no set: it has lost its memory
	Stale                // it may have forgotten something since it last had a vote
	Waiting              // until whatever it forgot is over
	Ready                // that is over, and it has no vote
	Voting
)

// state returns the state of a master.
//
// One that has restarted remembers everything if it wrote everything down before it answered, then
// and now, has started from what it wrote, and has not been a replica since: what a replica has is
// as old as its copy. Nor may it be behind the others: one whose log was turned off for a while has
// that on record in its memory only, and comes back with a log that is as old.
func (m *master) state() State {
	i, r := &m.Info, &m.Info.Record
	remembers := r.Run == i.Run || r.Durable && i.Durable && i.Loaded && !m.behind
	switch {
	case i.Err != nil:
		return Silent
	case m.unfit != nil, i.Damaged != nil:
		return Unfit
	case r.Version == 0 || m.copied:
		return Blank
	case !remembers || i.Past != r.Past && i.Past != "":
		return Stale
	case i.Vote != "":
		return Voting
	case i.Wait > Rejoin(r.MaxTTL): // its clock was set back: it waits anew, by the clock that it has
		return Stale
	case i.Wait+i.Took > 0:
		// It has waited only if that was over when the first master was asked. Until then a claim
		// that counts on what this one has forgotten may have written a larger token to another
		// one, after that one has said what its largest is.
		return Waiting
	}
	return Ready
}

var errNoVote = errors.New("it has no vote")

// elect returns for each master nil if it may vote, or why not. vacant is how many places of the
// set have no master, because an operator gave up those that had them.
//
// A master that may have forgotten something votes again when whatever it forgot is over, which it
// has waited for, and
//   - a majority of the others votes: these have every token that was promised, so it goes on above
//     theirs; or
//   - nobody has anything left to wait for: all masters of the set answer, and each votes or is
//     ready. Then so many have forgotten that no majority of the others may be left, nor ever come.
//     All together know what is left to know, and beyond that the order of tokens rests on the time
//     that they are drawn from.
//
// Only the second ends a wait after the loss of a majority. Either way every voter has waited since
// its loss, which is what exclusion needs: see docs/models/quorum.pml.
func elect(states []State, vacant, quorum int) []error {
	voters, over := 0, 0
	for _, s := range states {
		if s == Voting {
			voters++
		}
		if s == Voting || s == Ready {
			over++
		}
	}
	why := make([]error, len(states))
	for i, s := range states {
		switch {
		case s == Voting:
		case s == Ready && (voters >= quorum || over+vacant >= len(states)):
		case s == Ready:
			why[i] = fmt.Errorf("it has waited for what it may have forgotten, and %d of %d masters vote, want %d, or all to answer and to have waited",
				voters, len(states), quorum)
		default:
			why[i] = errNoVote
		}
	}
	return why
}

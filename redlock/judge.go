package redlock

import "fmt"

// condition is that of a master in its set, by what it says of itself.
type condition uint8

const (
	silent     condition = iota // it did not answer: it may be anything
	unfit                       // it is no master of its own, or of another set, or its record is damaged
	blank                       // it knows of no set: it has lost its memory
	stale                       // it may have forgotten something since it last had a vote
	recovering                  // until whatever it forgot is over
	ready                       // that is over, and it has no vote
	voting
)

// condition says how the master stands. One that has restarted remembers everything if it wrote everything down before it answered,
// then and now, has started from what it wrote, and has not been a replica since: what one of these has is as old as its copy. Nor may it
// be behind the others: one whose log was turned off for a while has that on record in its memory only, and comes back with a log that
// is as old.
func (p *portrait) condition() condition {
	remembers := p.knew == p.run || p.kept && p.durable && p.loaded && !p.behind
	switch {
	case p.err != nil:
		return silent
	case p.unfit != nil, p.damaged != nil:
		return unfit
	case p.record.version == 0 || p.strayed:
		return blank
	case !remembers || p.past != p.knewPast && p.past != "":
		return stale
	case p.vote != "":
		return voting
	case p.wait > rejoin(p.record.maxTTL): // its clock was set back: it waits anew, by the clock that it has
		return stale
	case p.wait+p.took > 0:
		// It has waited only if that was over when the first master was asked: until then a claim that counts on what this one has
		// forgotten may have written a larger token to another one, after that one has said what its largest is.
		return recovering
	}
	return ready
}

// judge says which masters may vote, and why each of the others may not. vacant is how many places of the set have no master, because
// an operator gave up whoever had them.
//
// A master that may have forgotten something votes again when whatever it forgot is over, which it has waited for, and
//   - a majority of the others votes: these have every token that was promised, so it goes on above theirs; or
//   - nobody has anything left to wait for: all masters of the set answer, and each votes or is ready. Then so many have forgotten that
//     no majority of the others may be left, nor ever come. All know together what is left to know, and beyond that the order of
//     tokens rests on the time that they are drawn from.
//
// Of these only the second can end a wait after the loss of a majority, and whoever was counted on has waited either way: see
// docs/models/quorum.pml.
func judge(conditions []condition, vacant, quorum int) []error {
	voters, over := 0, 0
	for _, p := range conditions {
		if p == voting {
			voters++
		}
		if p == voting || p == ready {
			over++
		}
	}
	why := make([]error, len(conditions))
	for i, p := range conditions {
		switch {
		case p == voting:
		case p == ready && (voters >= quorum || over+vacant >= len(conditions)):
		case p == ready:
			why[i] = fmt.Errorf("it has waited for what it may have forgotten, and %d of %d masters vote, want %d, or all to answer and to have waited",
				voters, len(conditions), quorum)
		default:
			why[i] = errNoVote // whoever has it wait says for how long
		}
	}
	return why
}

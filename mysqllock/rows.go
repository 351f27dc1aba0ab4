package mysqllock

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/rowline"
)

// rows is what technique rows asks the procedures. It implements rowline.Store, and rowline.Gates
// by the gates of claims.
type rows struct{ *server }

// Open implements rowline.Store.
func (r rows) Open(ctx context.Context, spec driver.Spec) (int64, error) {
	clock, _, err := r.call(ctx, "open('%s', %d, x'%x')", spec.ID, spec.TTL.Microseconds(), spec.Owner.Encode())
	return integer(clock), err
}

// quoted returns an ID in SQL.
func quoted(id string) string {
	if id == "" {
		return "null"
	}
	return "'" + id + "'"
}

// seconds returns a time in whole seconds, rounded up, as the server has them.
func seconds(patience time.Duration) int64 { return int64((patience + time.Second - 1) / time.Second) }

// Step implements rowline.Store. A step that only looks waits for no lock, and changes nothing as
// long as all claims before it live.
func (r rows) Step(ctx context.Context, s rowline.Step, patience time.Duration) (rowline.Answer, error) {
	var c driver.Claim
	if s.New != nil {
		c = *s.New
	}
	if s.Again && !s.Renew && s.Old == "" {
		a, err := looked(r.send(ctx, r.lookAt(c.Name, s.Session, c.ID, ""), ""))
		if err != nil {
			return a, err
		}
		if a.State == rowline.Held || a.State == rowline.Waiting && a.Left != 0 {
			return a, nil
		}
	}
	stay, gate := c.Queue, none
	if s.Again {
		stay = s.Renew
	} else if c.ID != "" && c.Kind != driver.Permit {
		gate = r.gates.take(ctx, s.Session, c.ID)
	}
	a, err := r.send(ctx, fmt.Sprintf("call %sturn(x'%x', '%s', %s, %s, %t, %t, %d, %d, %d, %d, x'%x', %d, %d, '%s', %s)",
		r.options.Prefix, s.Name, s.Session,
		quoted(s.Old), quoted(c.ID), s.Again, stay, c.Kind, c.Weight, c.Limit, c.Passes, c.Note, s.Deadline, seconds(patience), gate, quoted(r.gates.gate(s.Old))), s.Old)
	if err == nil && len(a.rows) == 0 {
		err = errNothing
	}
	if err != nil {
		if !s.Again && !a.twice && (errors.Is(err, driver.ErrNotSent) || errors.Is(err, driver.ErrRefused)) {
			r.gates.left(c.ID, false, false)
		}
		return rowline.Answer{Twice: a.twice}, err
	}
	// state, was, fence, left_us, head, gate, others, and of who is in the way: until when he is
	// valid, his owner, his claim
	f := strings.SplitN(string(a.rows[0][0]), " ", 10)
	f = append(f, make([]string, 10-len(f))...)
	answer := placed([]string{f[0], f[2], f[3], f[4], f[5]})
	answer.Was, answer.Twice, answer.Clock = f[1] == "t", a.twice, integer(f[2])
	if owner, err := hex.DecodeString(f[8]); f[9] != "" && err == nil {
		if h, err := holder(f[9], owner, integer(f[7])); err == nil {
			answer.Holder = &h
		}
	}
	r.gates.left(s.Old, f[6] == "t", a.kept)
	switch {
	case answer.State == rowline.Waiting:
		r.gates.waits(c.ID)
	case answer.State != rowline.Held && !s.Again:
		r.gates.left(c.ID, a.twice, false) // a first attempt of unknown outcome may have put it there
	}
	return answer, nil
}

// ReleaseBatch implements rowline.BatchReleaser.
func (r rows) ReleaseBatch(ctx context.Context, name string, all []rowline.Member, patience time.Duration) ([]bool, bool, error) {
	var claims strings.Builder
	for _, l := range all {
		fmt.Fprintf(&claims, "%s %s\n", l.ID, l.Session)
	}
	answer, twice, err := r.call(ctx, "depart(x'%x', x'%x', %d)", name, claims.String(), seconds(patience))
	if err != nil {
		return nil, twice, err
	}
	f := strings.Fields(answer) // others, and of each whether it was held
	if len(f) != 1+len(all) {
		return nil, twice, fmt.Errorf("the server answered of %d claims, not of %d", len(f)-1, len(all))
	}
	was := make([]bool, len(all))
	for i := range all {
		was[i] = f[1+i] == "t"
	}
	r.gates.leftTogether(all, f[0] == "t")
	return was, twice, nil
}

// lookAt returns the statement that looks at a claim, at once or when a gate opens.
func (r rows) lookAt(name, session, id, gate string) string {
	return fmt.Sprintf("call %slook(x'%x', '%s', '%s', %s)", r.options.Prefix, name, session, id, quoted(gate))
}

// Await implements rowline.Gates.
func (r rows) Await(ctx context.Context, session string, c driver.Claim, gate string) (rowline.Answer, error) {
	back, err := r.gates.place()
	if err != nil {
		return rowline.Answer{}, err
	}
	defer back()
	all, err := once(ctx, r.db, nil, r.lookAt(c.Name, session, c.ID, gate))
	return looked(reply{rows: all}, err)
}

// looked reads the answer to lookAt.
func looked(a reply, err error) (rowline.Answer, error) {
	switch {
	case err != nil:
		return rowline.Answer{Twice: a.twice}, err
	case len(a.rows) == 0:
		return rowline.Answer{Twice: a.twice}, errNothing
	}
	return placed(strings.Fields(string(a.rows[0][0]))), nil
}

// placed reads how a claim stands: state, fence, left_us, head, gate.
func placed(f []string) rowline.Answer {
	gate := f[4]
	if gate == none {
		gate = ""
	}
	return rowline.Answer{
		Gate:  gate,
		State: rowline.State(integer(f[0])), Fence: uint64(integer(f[1])), Left: time.Duration(integer(f[2])) * time.Microsecond, Head: f[3] == "t", //nolint:gosec // never negative
	}
}

// Renew implements rowline.Store.
func (r rows) Renew(ctx context.Context, session string, claims []rowline.Known, patience time.Duration) (clock int64, changed map[string]rowline.Answer, err error) {
	r.gates.watch()
	var known strings.Builder
	for _, c := range claims {
		state := rowline.Waiting
		if c.Held {
			state = rowline.Held
		}
		fmt.Fprintf(&known, "%s %d %x\n", c.ID, state, c.Name)
	}
	answer, _, err := r.call(ctx, "renew('%s', x'%x', %d)", session, known.String(), seconds(patience))
	if err != nil {
		return 0, nil, err
	}
	first, rest, _ := strings.Cut(answer, "\n")
	state, us, lives := strings.Cut(first, " ")
	if !lives || state != "0" {
		return 0, nil, driver.ErrSessionLost
	}
	changed = map[string]rowline.Answer{}
	for l := range strings.Lines(rest) { // number, and how it stands
		f := strings.Fields(l)
		changed[claims[integer(f[0])-1].ID] = placed(f[1:])
	}
	return integer(us), changed, nil
}

// Finish implements rowline.Store.
func (r rows) Finish(ctx context.Context, session string, names []string) error {
	var all strings.Builder
	for _, name := range names {
		fmt.Fprintf(&all, "%x\n", name)
	}
	_, err := r.send(ctx, fmt.Sprintf("call %sfinish('%s', x'%x')", r.options.Prefix, session, all.String()), "")
	if err == nil {
		r.gates.finish(session)
	}
	return err
}

// holder reads a claim of a line, in the columns of the schema.
func holder(claim string, owner []byte, until int64) (driver.Holder, error) {
	f := strings.Split(strings.TrimSuffix(claim, "\n"), " ")
	if len(f) != 12 {
		return driver.Holder{}, fmt.Errorf("a claim of %d columns, want 12", len(f))
	}
	note, err := hex.DecodeString(f[11])
	if err != nil {
		return driver.Holder{}, fmt.Errorf("the note of a claim: %w", err)
	}
	h := driver.Holder{
		PublicID: driver.PublicID(f[0]), Owner: driver.DecodeOwner(owner), Kind: driver.Kind(integer(f[3])), Weight: int(integer(f[4])), Limit: int(integer(f[5])), //nolint:gosec // one digit
		Held: f[2] != "1", Broken: f[2] == "3", Note: string(note), Since: time.UnixMicro(integer(f[6])), Fence: uint64(integer(f[7])), Passes: int(integer(f[10])), //nolint:gosec // never negative
	}
	if h.Broken {
		until = min(until, integer(f[8]))
	}
	h.Until = time.UnixMicro(until)
	return h, nil
}

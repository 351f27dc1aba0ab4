package pglock

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/rowline"
)

// rows calls the schema's functions for technique rows. It implements rowline.Store.
type rows struct {
	*server
	channel string // of this process, for NOTIFY
}

// maxName is what the index of the table can hold, and some.
const maxName = 2048

// Open implements rowline.Store. The same statement deletes rows of sessions that ended long ago,
// which steps of lines have not met. It looks at the next few by their IDs, which are random: so
// only a small part of all rows are such, and the cost does not grow with their number.
func (r rows) Open(ctx context.Context, spec driver.Spec) (int64, error) {
	a, err := r.call(ctx, fmt.Sprintf("with swept as (delete from %[1]ssession where id in (select s.id from %[1]ssession s "+
		"where s.id = any (array(select o.id from %[1]ssession o where o.id > '%[2]s' order by o.id limit 20)) "+
		"and s.until < %[1]sus() - 3600000000 for update skip locked)) "+
		"insert into %[1]ssession values ('%[2]s', '%[3]s', %[4]d, %[1]sus() + %[4]d, '{}', decode('%[5]x', 'hex')) "+
		"on conflict (id) do update set until = excluded.until returning until - ttl", r.in, spec.ID, r.channel, spec.TTL.Microseconds(), spec.Owner.Encode()))
	if err != nil {
		return 0, err
	}
	return number(a.rows[0][0]), nil
}

// octets are bytes as the server reads them.
func octets(s string) []byte { return hex.AppendEncode([]byte(`\x`), []byte(s)) }

func decimal(n int64) []byte { return strconv.AppendInt(nil, n, 10) }

// Step implements rowline.Store.
func (r rows) Step(ctx context.Context, s rowline.Step, patience time.Duration) (rowline.Answer, error) {
	var dc driver.Claim
	var oldID, newID []byte
	if s.Old != "" {
		oldID = []byte(s.Old)
	}
	stay := s.Renew
	if s.New != nil {
		dc, newID = *s.New, []byte(s.New.ID)
	}
	if !s.Again {
		stay = dc.Queue
	}
	a, err := r.step(ctx, octets(s.Name), []byte(s.Session), oldID, newID, strconv.AppendBool(nil, s.Again), strconv.AppendBool(nil, stay),
		decimal(int64(dc.Kind)), decimal(int64(dc.Weight)), decimal(int64(dc.Limit)), decimal(int64(dc.Passes)), octets(dc.Note),
		decimal(s.Deadline), decimal(max(patience.Milliseconds(), 1)))
	if err != nil {
		return rowline.Answer{Twice: a.twice}, err
	}
	f := [6]string{} // state, was, fence, left_us, head, way
	copy(f[:], strings.SplitN(string(a.rows[0][0]), " ", len(f)))
	answer := placed(f[0], f[2], f[3], f[4])
	answer.Was, answer.Twice, answer.Holder, answer.Clock = f[1] == "t", a.twice, inWay(f[5]), number(f[2])
	return answer, nil
}

// ReleaseBatch implements rowline.BatchReleaser.
func (r rows) ReleaseBatch(ctx context.Context, name string, all []rowline.Member, patience time.Duration) ([]bool, bool, error) {
	whose, ids, was := make([]string, len(all)), make([]string, len(all)), make([]bool, len(all))
	for i, l := range all {
		whose[i], ids[i] = l.Session, l.ID
	}
	a, err := r.call(ctx, fmt.Sprintf("select array_to_string(%sleave(decode('%x', 'hex'), '{%s}', '{%s}', %d), ' ')",
		r.in, name, strings.Join(whose, ","), strings.Join(ids, ","), max(patience.Milliseconds(), 1)))
	if err != nil {
		return nil, a.twice, err
	}
	fields := strings.Fields(string(a.rows[0][0]))
	if len(fields) != len(all) {
		return nil, a.twice, fmt.Errorf("the server answered of %d claims, not of %d", len(fields), len(all))
	}
	for i, f := range fields {
		was[i] = f == "t"
	}
	return was, a.twice, nil
}

// placed reads how a claim stands.
func placed[S string | []byte](state, fence, left, head S) rowline.Answer {
	return rowline.Answer{
		State: rowline.State(number(state)), Fence: uint64(number(fence)), //nolint:gosec // never negative
		Left: time.Duration(number(left)) * time.Microsecond, Head: string(head) == "t",
	}
}

// Renew implements rowline.Store.
func (r rows) Renew(ctx context.Context, session string, claims []rowline.Known, patience time.Duration) (clock int64, changed map[string]rowline.Answer, err error) {
	names, ids, holds := make([]string, len(claims)), make([]string, len(claims)), make([]string, len(claims))
	for i, c := range claims {
		names[i], ids[i], holds[i] = hex.EncodeToString([]byte(c.Name)), c.ID, strconv.FormatBool(c.Held)
	}
	a, err := r.call(ctx, fmt.Sprintf("select * from %srenew('%s', '{%s}', '{%s}', '{%s}', %d)",
		r.in, session, strings.Join(names, ","), strings.Join(ids, ","), strings.Join(holds, ","), patience.Milliseconds()))
	switch {
	case err != nil:
		return 0, nil, err
	case len(a.rows) == 0:
		return 0, nil, errNothing
	case rowline.State(number(a.rows[0][1])) == rowline.Over: //nolint:gosec // one digit
		return 0, nil, driver.ErrSessionLost
	}
	changed = map[string]rowline.Answer{}
	for _, f := range a.rows[1:] {
		changed[ids[number(f[0])-1]] = placed(f[1], f[2], f[3], f[4])
	}
	return number(a.rows[0][2]), changed, nil
}

// Finish implements rowline.Store.
func (r rows) Finish(ctx context.Context, session string, names []string) error {
	encoded := make([]string, len(names))
	for i, name := range names {
		encoded[i] = hex.EncodeToString([]byte(name))
	}
	_, err := r.call(ctx, fmt.Sprintf("select %sfinish('%s', '{%s}')", r.in, session, strings.Join(encoded, ",")))
	return err
}

// shown is a claim as the schema's function seen writes it.
type shown struct {
	ID                    string
	Kind                  driver.Kind
	Weight, Limit, Passes int
	Held, Broken          bool
	Since, Until          int64
	Fence                 uint64
	Note, Owner           []byte
}

// holder is the claim as the contract has it.
func (c *shown) holder() driver.Holder {
	return driver.Holder{
		PublicID: c.ID, Owner: driver.DecodeOwner(c.Owner), Kind: c.Kind, Weight: c.Weight, Limit: c.Limit, Held: c.Held, Broken: c.Broken,
		Note: string(c.Note), Since: time.UnixMicro(c.Since), Until: time.UnixMicro(c.Until), Fence: c.Fence, Passes: c.Passes,
	}
}

// holders reads a line as it is shown.
func holders(b []byte) ([]driver.Holder, error) {
	var all []shown
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, fmt.Errorf("pglock: a line that cannot be read: %w", err)
	}
	var claims []driver.Holder
	for _, c := range all {
		claims = append(claims, c.holder())
	}
	return claims, nil
}

// inWay reads who is in the way of a claim, where the answer says it.
func inWay(b string) *driver.Holder {
	var c shown
	if b == "" || json.Unmarshal([]byte(b), &c) != nil {
		return nil
	}
	h := c.holder()
	return &h
}

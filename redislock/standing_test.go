package redislock_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/driver"
)

// standing is what the server keeps of one name.
type standing struct {
	value   string // at the name, "" if there is none
	counter int64
	line    []string          // IDs
	records map[string]string // by ID, and the notes of the whole line, whose names are signs
	endless bool              // the line, or its records, would stay for ever
	forever bool              // so would the value at the name
}

// lookScript reads the keys of a name in one step: a step of its own, so that no mistake of ours
// covers up another.
var lookScript = redis.NewScript(`
return {redis.call('GET', KEYS[1]) or '', redis.call('GET', KEYS[2]) or '0', redis.call('LRANGE', KEYS[3], 0, -1), redis.call('HGETALL', KEYS[4]),
  redis.call('PTTL', KEYS[3]) == -1 or redis.call('PTTL', KEYS[4]) == -1,
  redis.call('PTTL', KEYS[1]) == -1}`)

// sideKeys are the counter, the line and the claims of a name without braces.
func sideKeys(name string) (counter, line, claims string) {
	return "il:{" + name + "}:fence:" + name, "il:{" + name + "}:line:" + name, "il:{" + name + "}:claims:" + name
}

func (s *stage) look(t testing.TB, name string) standing {
	t.Helper()
	counter, line, claims := sideKeys(name)
	v, err := lookScript.Run(context.Background(), s.raw, []string{name, counter, line, claims}).Slice()
	if err != nil {
		t.Fatalf("look: %v", err)
	}
	st := standing{value: v[0].(string), records: map[string]string{}}
	st.counter, _ = strconv.ParseInt(v[1].(string), 10, 64)
	for _, id := range v[2].([]any) {
		st.line = append(st.line, id.(string))
	}
	pairs := v[3].([]any)
	for i := 0; i < len(pairs); i += 2 {
		st.records[pairs[i].(string)] = pairs[i+1].(string)
	}
	st.endless, st.forever = v[4] != nil, v[5] != nil
	return st
}

const (
	ours  = "il1:"
	cover = "il1:shared"
)

// holder is the ID of the claim of ours that holds alone, or "".
func (st standing) holder() string {
	if !strings.HasPrefix(st.value, ours) || len(st.value) < 27 {
		return ""
	}
	return st.value[4:26]
}

// field is a field of a claim's record: state kind weight limit ttl stop since channel info.
func (st standing) field(id string, i int) string {
	f := strings.SplitN(st.records[id], " ", 9)
	if len(f) != 9 {
		return ""
	}
	return f[i]
}

func (st standing) number(id string, i int) int64 {
	n, _ := strconv.ParseInt(st.field(id, i), 10, 64)
	return n
}

func (st standing) channel(id string) string { return st.field(id, 7) }

// held returns the IDs of all claims that hold.
func (st standing) held() []string {
	if id := st.holder(); id != "" {
		return []string{id}
	}
	var held []string
	for _, id := range st.line {
		if st.field(id, 0) != "w" && st.value == cover && st.number(id, 5) > 1 { // ended by a test, and nobody has looked
			held = append(held, id)
		}
	}
	return held
}

// waits returns the IDs of all claims that wait.
func (st standing) waits() []string {
	return slices.DeleteFunc(slices.Clone(st.line), func(id string) bool { return st.field(id, 0) != "w" })
}

// ill lists what must not be, whatever has happened.
func (st standing) ill() (ills []string) {
	complain := func(format string, args ...any) { ills = append(ills, fmt.Sprintf(format, args...)) }
	if st.endless {
		complain("the line or its records have no end: they would stay when everybody has gone")
	}
	if st.forever && (st.holder() != "" || st.value == cover) {
		complain("the value %.30q has no end: who dies would hold for ever", st.value)
	}
	if odd := st.counter%2 == 1; odd != (len(st.line) > 0) {
		complain("the counter is %d, and %d stand in line: it must be odd if and only if somebody does", st.counter, len(st.line))
	}
	if id := st.holder(); id != "" {
		mark := st.value[26]
		if mark != '!' && (mark == '+') != (len(st.line) > 0) {
			complain("the holder's mark is %c, and %d stand in line: it must be + if and only if somebody does", mark, len(st.line))
		}
		if slices.Contains(st.line, id) || st.records[id] != "" {
			complain("the holder stands in line as well")
		}
	}
	seen := map[string]bool{}
	for _, id := range st.line {
		if seen[id] {
			complain("%s stands in line twice", id)
		}
		seen[id] = true
		if st.field(id, 0) == "" {
			complain("%s stands in line and has the record %q", id, st.records[id])
		}
	}
	for id := range st.records {
		if len(id) > 1 && !seen[id] {
			complain("%s has a record and does not stand in line", id)
		}
	}
	return append(ills, st.unruly()...)
}

// unruly lists who holds against the rule.
func (st standing) unruly() (ills []string) {
	if st.value != cover {
		return nil // what stands in line does not hold, or no longer
	}
	sum, holding := int64(0), 0
	for _, id := range st.line {
		sum += st.number(id, 2)
		if st.field(id, 0) == "w" {
			continue
		}
		holding++
		if limit := st.number(id, 3); sum > limit {
			ills = append(ills, fmt.Sprintf("%s holds with a limit of %d, under a weight of %d", id, limit, sum))
		}
	}
	if holding == 0 {
		ills = append(ills, "the name is covered for claims that share it, and there are none")
	}
	return ills
}

// idle reports that somebody waits although nobody is in the way.
func (st standing) idle() bool { return st.value == "" && len(st.line) > 0 }

func (st standing) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "value %q, counter %d", st.value, st.counter)
	for _, id := range st.line {
		fmt.Fprintf(&b, "\n  %s %s", id, st.records[id])
	}
	for id, r := range st.records {
		if !slices.Contains(st.line, id) {
			fmt.Fprintf(&b, "\n  beside the line: %s %s", id, r)
		}
	}
	return b.String()
}

// sound sees that the name is as it must be.
func (s *stage) sound(t testing.TB, name string) standing {
	t.Helper()
	st := s.look(t, name)
	for _, ill := range st.ill() {
		t.Errorf("%s\n%s", ill, st)
	}
	return st
}

// stands sees who holds and who waits.
func (s *stage) stands(t testing.TB, holder driver.Claim, waiters ...driver.Claim) standing {
	t.Helper()
	st := s.sound(t, holder.Name)
	var ids []string
	for _, c := range waiters {
		ids = append(ids, c.ID)
	}
	if held := st.held(); !slices.Equal(held, []string{holder.ID}) || !slices.Equal(st.waits(), ids) {
		t.Fatalf("hold %v and wait %v; want %s and %v\n%s", held, st.waits(), holder.ID, ids, st)
	}
	return st
}

// reached waits until so many connections listen to the channel of a claim, as the server sees it
// that its master is.
func (s *stage) reached(t *testing.T, name, channel string, n int64) {
	t.Helper()
	until(t, fmt.Sprintf("%d listen to the waiter's channel", n), func() bool {
		return s.listeners(t, name, channel) == n
	})
}

func (s *stage) listeners(t testing.TB, name, channel string) int64 {
	t.Helper()
	node := s.nodes[0]
	if s.cluster != nil {
		node = s.cluster.Owner(s.cluster.Slot(name))
	}
	text := node.MustDo(t, "PUBSUB", "NUMSUB", channel)
	_, count, _ := strings.Cut(text, "\n")
	n, err := strconv.ParseInt(count, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

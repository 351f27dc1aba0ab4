package membership

import (
	"errors"
	"testing"
	"time"
)

func TestStates(t *testing.T) {
	t.Parallel()
	wait := Rejoin(time.Minute)
	member := func(change func(m *master)) *master {
		m := &master{}
		m.Info = Info{Run: "2", Vote: "set", Record: Record{Run: "2", Set: Set{Version: 1, MaxTTL: time.Minute}}}
		change(m)
		return m
	}
	for what, c := range map[string]struct {
		want State
		m    *master
	}{
		"it does not answer":                   {Silent, &master{Seen: Seen{Info: Info{Err: errors.New("no answer yet")}}}},
		"it is a replica":                      {Unfit, member(func(m *master) { m.unfit = errors.New("a replica") })},
		"it knows of no set":                   {Blank, &master{Seen: Seen{Info: Info{Run: "2"}}}},
		"it has another one's record":          {Blank, member(func(m *master) { m.copied = true })},
		"it votes":                             {Voting, member(func(*master) {})},
		"it has restarted":                     {Stale, member(func(m *master) { m.Record.Run = "1" })},
		"it has restarted and keeps all since": {Stale, member(func(m *master) { m.Record.Run, m.Durable = "1", true })},
		"it has restarted and kept all until":  {Stale, member(func(m *master) { m.Record.Run, m.Record.Durable = "1", true })},
		"it has restarted and keeps all":       {Voting, member(func(m *master) { m.Record.Run, m.Record.Durable, m.Durable, m.Loaded = "1", true, true, true })},
		"it has started, and keeps all since":  {Stale, member(func(m *master) { m.Record.Run, m.Record.Durable, m.Durable = "1", true, true })},
		"it keeps all, as a copy": {Stale, member(func(m *master) {
			m.Record.Run, m.Record.Durable, m.Durable, m.Loaded, m.Past = "1", true, true, true, "a"
		})},
		"it was a copy meanwhile":                {Stale, member(func(m *master) { m.Past = "a" })},
		"it was a copy, and has waited for that": {Voting, member(func(m *master) { m.Past, m.Record.Past = "a", "a" })},
		"it waits":                               {Waiting, member(func(m *master) { m.Vote, m.Wait = "", wait })},
		"it waits, and its clock was set back":   {Stale, member(func(m *master) { m.Vote, m.Wait = "", wait+time.Hour })},
		"it waits, and keeps all over a restart": {Waiting, member(func(m *master) {
			m.Vote, m.Wait, m.Record.Run, m.Record.Durable, m.Durable, m.Loaded = "", wait, "1", true, true, true
		})},
		"it waits, and forgets over a restart":    {Stale, member(func(m *master) { m.Vote, m.Wait, m.Record.Run = "", wait, "1" })},
		"it has waited":                           {Ready, member(func(m *master) { m.Vote, m.Wait = "", -1 })},
		"it has waited since others were asked":   {Waiting, member(func(m *master) { m.Vote, m.Wait, m.Took = "", -time.Second, 2*time.Second })},
		"it begins to wait, and answers late":     {Waiting, member(func(m *master) { m.Vote, m.Wait, m.Took = "", wait, time.Second })},
		"it has waited, and forgets over a start": {Stale, member(func(m *master) { m.Vote, m.Wait, m.Record.Run = "", -1, "1" })},
	} {
		if got := c.m.state(); got != c.want {
			t.Errorf("%s: state %d, want %d", what, got, c.want)
		}
	}
}

// A vote comes back when a majority of the others votes, or when all masters are there and none has
// anything to wait for.
func TestElect(t *testing.T) {
	t.Parallel()
	const v, r, w, s, b, x, u = Voting, Ready, Waiting, Stale, Blank, Silent, Unfit
	for what, c := range map[string]struct {
		states []State
		vacant int
		want   []bool // who may vote
	}{
		"all vote":                                 {[]State{v, v, v}, 0, []bool{true, true, true}},
		"one waits":                                {[]State{v, w, v}, 0, []bool{true, false, true}},
		"one has waited":                           {[]State{v, r, v}, 0, []bool{true, true, true}},
		"one may have forgotten":                   {[]State{s, v, v}, 0, []bool{false, true, true}},
		"one is blank":                             {[]State{v, v, b}, 0, []bool{true, true, false}},
		"one is away, one has waited":              {[]State{r, v, x}, 0, []bool{false, true, false}},
		"one of five is away, one has waited":      {[]State{r, v, x, v, v}, 0, []bool{true, true, false, true, true}},
		"two have waited":                          {[]State{r, v, r}, 0, []bool{true, true, true}},
		"one has waited, one waits":                {[]State{r, v, w}, 0, []bool{false, true, false}},
		"one has waited, one may have forgotten":   {[]State{r, v, s}, 0, []bool{false, true, false}},
		"one has waited, one is blank":             {[]State{r, v, b}, 0, []bool{false, true, false}},
		"one has waited, one is a replica":         {[]State{r, v, u}, 0, []bool{false, true, false}},
		"three of five have waited":                {[]State{r, r, r, v, v}, 0, []bool{true, true, true, true, true}},
		"all have waited":                          {[]State{r, r, r, r, r}, 0, []bool{true, true, true, true, true}},
		"three of five have waited, one is away":   {[]State{r, r, r, v, x}, 0, []bool{false, false, false, true, false}},
		"three have waited, one is given up":       {[]State{r, r, r, v, x}, 1, []bool{true, true, true, true, false}},
		"two have waited, one waits, one given up": {[]State{r, r, w, v, x}, 1, []bool{false, false, false, true, false}},
		"two are away, one given up":               {[]State{r, r, x, v, x}, 1, []bool{false, false, false, true, false}},
	} {
		for i, why := range elect(c.states, c.vacant, Majority(len(c.states))) {
			if (why == nil) != c.want[i] {
				t.Errorf("%s: master %d may not vote for %v, want that it may: %v", what, i+1, why, c.want[i])
			}
		}
	}
}

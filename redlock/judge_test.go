package redlock

import (
	"errors"
	"testing"
	"time"
)

func TestConditions(t *testing.T) {
	t.Parallel()
	wait := rejoin(time.Minute)
	member := func(change func(*portrait)) *portrait {
		p := &portrait{run: "2", knew: "2", vote: "set", record: membership{version: 1, maxTTL: time.Minute}}
		change(p)
		return p
	}
	for what, c := range map[string]struct {
		want condition
		p    *portrait
	}{
		"it does not answer":                     {silent, &portrait{err: errors.New("no answer yet")}},
		"it is a replica":                        {unfit, member(func(p *portrait) { p.unfit = errors.New("a replica") })},
		"it knows of no set":                     {blank, &portrait{run: "2"}},
		"it has another one's record":            {blank, member(func(p *portrait) { p.strayed = true })},
		"it votes":                               {voting, member(func(*portrait) {})},
		"it has restarted":                       {stale, member(func(p *portrait) { p.knew = "1" })},
		"it has restarted and keeps all since":   {stale, member(func(p *portrait) { p.knew, p.durable = "1", true })},
		"it has restarted and kept all until":    {stale, member(func(p *portrait) { p.knew, p.kept = "1", true })},
		"it has restarted and keeps all":         {voting, member(func(p *portrait) { p.knew, p.kept, p.durable, p.loaded = "1", true, true, true })},
		"it has started, and keeps all since":    {stale, member(func(p *portrait) { p.knew, p.kept, p.durable = "1", true, true })},
		"it keeps all, as a copy":                {stale, member(func(p *portrait) { p.knew, p.kept, p.durable, p.loaded, p.past = "1", true, true, true, "a" })},
		"it was a copy meanwhile":                {stale, member(func(p *portrait) { p.past = "a" })},
		"it was a copy, and has waited for that": {voting, member(func(p *portrait) { p.past, p.knewPast = "a", "a" })},
		"it waits":                               {recovering, member(func(p *portrait) { p.vote, p.wait = "", wait })},
		"it waits, and its clock was set back":   {stale, member(func(p *portrait) { p.vote, p.wait = "", wait+time.Hour })},
		"it waits, and keeps all over a restart": {recovering, member(func(p *portrait) {
			p.vote, p.wait, p.knew, p.kept, p.durable, p.loaded = "", wait, "1", true, true, true
		})},
		"it waits, and forgets over a restart":    {stale, member(func(p *portrait) { p.vote, p.wait, p.knew = "", wait, "1" })},
		"it has waited":                           {ready, member(func(p *portrait) { p.vote, p.wait = "", -1 })},
		"it has waited since others were asked":   {recovering, member(func(p *portrait) { p.vote, p.wait, p.took = "", -time.Second, 2*time.Second })},
		"it begins to wait, and answers late":     {recovering, member(func(p *portrait) { p.vote, p.wait, p.took = "", wait, time.Second })},
		"it has waited, and forgets over a start": {stale, member(func(p *portrait) { p.vote, p.wait, p.knew = "", -1, "1" })},
	} {
		if got := c.p.condition(); got != c.want {
			t.Errorf("%s: condition %d, want %d", what, got, c.want)
		}
	}
}

// A vote comes back when a majority of the others votes, or when all masters are there and none has anything to wait for.
func TestJudge(t *testing.T) {
	t.Parallel()
	const v, r, w, s, b, x, u = voting, ready, recovering, stale, blank, silent, unfit
	for what, c := range map[string]struct {
		conditions []condition
		vacant     int
		want       []bool // who may vote
	}{
		"all vote":                                 {[]condition{v, v, v}, 0, []bool{true, true, true}},
		"one waits":                                {[]condition{v, w, v}, 0, []bool{true, false, true}},
		"one has waited":                           {[]condition{v, r, v}, 0, []bool{true, true, true}},
		"one may have forgotten":                   {[]condition{s, v, v}, 0, []bool{false, true, true}},
		"one is blank":                             {[]condition{v, v, b}, 0, []bool{true, true, false}},
		"one is away, one has waited":              {[]condition{r, v, x}, 0, []bool{false, true, false}},
		"one of five is away, one has waited":      {[]condition{r, v, x, v, v}, 0, []bool{true, true, false, true, true}},
		"two have waited":                          {[]condition{r, v, r}, 0, []bool{true, true, true}},
		"one has waited, one waits":                {[]condition{r, v, w}, 0, []bool{false, true, false}},
		"one has waited, one may have forgotten":   {[]condition{r, v, s}, 0, []bool{false, true, false}},
		"one has waited, one is blank":             {[]condition{r, v, b}, 0, []bool{false, true, false}},
		"one has waited, one is a replica":         {[]condition{r, v, u}, 0, []bool{false, true, false}},
		"three of five have waited":                {[]condition{r, r, r, v, v}, 0, []bool{true, true, true, true, true}},
		"all have waited":                          {[]condition{r, r, r, r, r}, 0, []bool{true, true, true, true, true}},
		"three of five have waited, one is away":   {[]condition{r, r, r, v, x}, 0, []bool{false, false, false, true, false}},
		"three have waited, one is given up":       {[]condition{r, r, r, v, x}, 1, []bool{true, true, true, true, false}},
		"two have waited, one waits, one given up": {[]condition{r, r, w, v, x}, 1, []bool{false, false, false, true, false}},
		"two are away, one given up":               {[]condition{r, r, x, v, x}, 1, []bool{false, false, false, true, false}},
	} {
		for i, why := range judge(c.conditions, c.vacant, majority(len(c.conditions))) {
			if (why == nil) != c.want[i] {
				t.Errorf("%s: master %d may not vote for %v, want that it may: %v", what, i+1, why, c.want[i])
			}
		}
	}
}

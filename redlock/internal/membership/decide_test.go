package membership

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// seen returns masters as words describe them, one for each. The set that they know has version 3,
// the members a, b, c and so on, and a MaxTTL of a minute; each started as its own ID says, and
// anew where 2 follows that.
func seen(words string) (all []Seen) {
	set := Set{Version: 3, MaxTTL: time.Minute}
	for i := range strings.Fields(words) {
		set.Members = append(set.Members, string(rune('a'+i)))
	}
	for i, word := range strings.Fields(words) {
		id := set.Members[i]
		s := Seen{Name: "master " + id, Was: id, Ran: id, Info: Info{
			Run: id, Role: "master", Used: true, High: int64(100 * i),
			Record: Record{Set: set, ID: id, Run: id}, Vote: set.Vote(id), Wait: -time.Hour,
		}}
		word, unknown := strings.CutSuffix(word, "?") // this program has not met it
		if unknown {
			s.Was, s.Ran = "", ""
		}
		word, unused := strings.CutSuffix(word, "!") // nobody has used the set for long
		s.Used = !unused
		switch word {
		case "votes":
		case "away":
			s.Info = Info{Err: errors.New("no answer")}
		case "replica":
			s.Role = "slave"
		case "damaged":
			s.Info = Info{Role: "master", Run: id, Damaged: errors.New("CORRUPT")}
		case "fresh": // it was never used
			s.Was, s.Ran, s.Used, s.Record, s.Vote = "", "", false, Record{}, ""
		case "blank":
			s.Run, s.Used, s.Record, s.Vote = id+"2", false, Record{}, ""
		case "stale":
			s.Run = id + "2"
		case "keeps": // and has restarted
			s.Run, s.Durable, s.Loaded, s.Record.Durable = id+"2", true, true, true
		case "late": // it was away when the set changed
			s.Record.Set = Set{Version: 2, Members: append(slices.Clone(set.Members[1:]), "z"), MaxTTL: time.Minute}
			s.Vote = s.Record.Set.Vote(id)
		case "waits":
			s.Vote, s.Wait = "", 30*time.Second
		case "ready":
			s.Vote = ""
		case "logless": // it kept everything, and its log was turned off
			s.Record.Durable, s.Logless = true, true
		case "copied": // it was a copy of the first one
			s.Run, s.Record.ID, s.Vote = id+"2", "a", set.Vote("a")
		case "twin": // the address of the first one
			s.Run = "a"
		case "other": // of another set
			s.Record.Set = Set{Version: 1, Members: []string{"x", "y", id + "x"}, MaxTTL: time.Minute}
			s.Record.ID = id + "x"
		default:
			panic("no master " + word)
		}
		all = append(all, s)
	}
	return all
}

// done says in a word what becomes of a master.
func done(s Step) string {
	vote := string(s.Vote)
	switch s.Action {
	case Keep:
		return "keep"
	case Bootstrap:
		return "new-" + vote
	case Reconcile:
		return vote
	case Register:
		return "as-" + s.Write.ID + "-" + vote
	}
	return "-"
}

// What is written on each master follows from what all of them say.
func TestDecide(t *testing.T) {
	t.Parallel()
	opens := func(q *Question) { q.Known = false }
	looks := func(q *Question) { q.Looks = true }
	gives := func(masters ...int) func(*Question) { return func(q *Question) { q.GiveUp = masters } }
	for what, c := range map[string]struct {
		masters string
		change  func(*Question)
		version int64  // of the set that they belong to then
		steps   string // what becomes of each
		votes   string // who has a vote then
		err     string
	}{
		// Bootstrap.
		"no master was ever used":                     {"fresh fresh fresh", opens, 1, "new-give new-give new-give", "abc", ""},
		"one of those is away":                        {"fresh fresh away", opens, 0, "- - -", "", "a new set of masters begins when all of them answer"},
		"two of those are away":                       {"fresh away away", opens, 0, "- - -", "", "1 of 3 masters answered, want 2 or more"},
		"one of those is a replica":                   {"fresh fresh replica", opens, 0, "- - -", "", "master c is a slave"},
		"one of those is named twice":                 {"fresh fresh twin", opens, 0, "- - -", "", "master a and master c are the same server"},
		"all have forgotten":                          {"blank blank blank", nil, 1, "new-wait new-wait new-wait", "", ""},
		"all have forgotten, and nobody knows":        {"blank? blank? blank?", opens, 1, "new-give new-give new-give", "abc", ""},
		"two have forgotten, and the set is in use":   {"votes blank blank", nil, 0, "- - -", "", "1 of 3 masters know that they are 3 masters"},
		"two have forgotten, and nobody uses the set": {"votes! blank blank", nil, 4, "new-give new-give new-give", "abc", ""},
		"another MaxTTL":                              {"votes votes votes", func(q *Question) { q.MaxTTL = time.Hour }, 0, "- - -", "", "end the programs that use the others"},
		"another MaxTTL, and nobody uses the set":     {"votes! votes! votes!", func(q *Question) { q.MaxTTL = time.Hour }, 4, "new-give new-give new-give", "abc", ""},
		"who looks bootstraps nothing":                {"fresh fresh fresh", func(q *Question) { q.Known, q.Looks = false, true }, 1, "- - -", "", ""},

		// Reconcile.
		"all vote":                                   {"votes votes votes", nil, 3, "keep keep keep", "abc", ""},
		"all vote, and this program opens":           {"votes? votes? votes?", opens, 3, "keep keep keep", "abc", ""},
		"one is away":                                {"votes votes away", nil, 3, "keep keep -", "ab", ""},
		"two are away":                               {"votes away away", nil, 0, "- - -", "", "1 of 3 masters answered, want 2 or more"},
		"one is damaged":                             {"votes votes damaged", nil, 3, "keep keep -", "ab", ""},
		"two are damaged":                            {"votes damaged damaged", nil, 0, "- - -", "", "3 of 3 masters answered, and 2 of these refused"},
		"one has become a replica":                   {"votes votes replica", nil, 3, "keep keep -", "ab", ""},
		"one was away when the set changed":          {"votes votes late", nil, 3, "keep keep give", "abc", ""},
		"one may have forgotten":                     {"votes votes stale", nil, 3, "keep keep wait", "ab", ""},
		"one keeps all over a restart":               {"votes votes keeps", nil, 3, "keep keep give", "abc", ""},
		"one waits":                                  {"votes votes waits", nil, 3, "keep keep keep", "ab", ""},
		"one has waited":                             {"votes votes ready", nil, 3, "keep keep give", "abc", ""},
		"one has waited, and only another one votes": {"votes waits ready", nil, 3, "keep keep keep", "a", ""},
		"two have waited, and a third one votes":     {"votes ready ready", nil, 3, "keep give give", "abc", ""},
		"all have waited":                            {"ready ready ready", nil, 3, "give give give", "abc", ""},
		"two have waited, one is away":               {"away ready ready", nil, 3, "- keep keep", "", ""},
		"one has waited, and this program looks":     {"votes votes ready", looks, 3, "keep keep keep", "ab", ""},
		"the log of one was turned off":              {"votes votes logless", nil, 4, "give give give", "abc", ""},
		"one is of another set":                      {"votes votes other", nil, 3, "keep keep -", "ab", ""},
		"one is of another set, and a program opens": {"votes votes other", opens, 0, "- - -", "", "which are in use"},
		"one was a copy of another one":              {"votes votes copied", nil, 4, "give give as-c2-wait", "ab", ""},
		"one address has moved to another one":       {"votes votes twin", nil, 3, "keep keep -", "ab", ""},

		// Reassign and register.
		"one has forgotten":                            {"votes votes blank", nil, 4, "give give as-c2-wait", "ab", ""},
		"one has forgotten, and this program opens":    {"votes? votes? blank?", opens, 4, "give give as-c2-wait", "ab", ""},
		"one has forgotten, and this program looks":    {"votes votes blank", looks, 3, "give give as-c2-wait", "ab", ""},
		"one has forgotten, one of five is away":       {"votes votes votes blank away", nil, 4, "give give give as-d2-wait -", "abc", ""},
		"one whose place is unknown, one away":         {"votes votes votes blank? away", nil, 3, "keep keep keep - -", "abc", ""},
		"two of five have forgotten":                   {"votes votes votes blank? blank?", nil, 4, "give give give as-d2-wait as-e2-wait", "abc", ""},
		"three of five have forgotten":                 {"votes votes blank blank blank", nil, 0, "- - - - -", "", "2 of 5 masters know that they are"},
		"one of five has forgotten, one was a replica": {"votes votes votes blank stale", nil, 4, "give give give as-d2-wait wait", "abc", ""},

		// Giving up.
		"one that is dead is given up":        {"votes ready away", gives(2), 4, "give give -", "ab", ""},
		"nobody gives it up":                  {"votes ready away", nil, 3, "keep keep -", "a", ""},
		"one that answers is not given up":    {"votes ready votes", gives(2), 3, "keep give keep", "abc", ""},
		"one of two that are away is no more": {"votes votes votes away away", gives(3), 3, "keep keep keep - -", "abc", ""},
	} {
		q := Question{Masters: seen(c.masters), MaxTTL: time.Minute, Known: true}
		if c.change != nil {
			c.change(&q)
		}
		asked := fmt.Sprintf("%+v", q)
		plan := Decide(q)
		var steps []string
		votes := ""
		for i, s := range plan.Masters {
			steps = append(steps, done(s))
			if plan.Err == nil && s.Why == nil {
				votes += string(rune('a' + i))
			}
		}
		if got := strings.Join(steps, " "); got != c.steps || votes != c.votes || plan.Set.Version != c.version {
			t.Errorf("%s: version %d, %s, and %q vote: want version %d, %s, and %q", what, plan.Set.Version, got, votes, c.version, c.steps, c.votes)
		}
		if (plan.Err == nil) != (c.err == "") || c.err != "" && !strings.Contains(plan.Err.Error(), c.err) {
			t.Errorf("%s: error %v, want %q in it", what, plan.Err, c.err)
		}
		if now := fmt.Sprintf("%+v", q); now != asked {
			t.Errorf("%s: what it was asked has changed:\n%s\n%s", what, asked, now)
		}
	}
}

// A set that some do not know yet is waited for if another program may register them just now: none
// has restarted.
func TestDecide_ASetInTheMaking(t *testing.T) {
	t.Parallel()
	for masters, passing := range map[string]bool{"votes votes? blank? blank? blank?": false, "votes votes fresh fresh fresh": true} {
		if plan := Decide(Question{Masters: seen(masters), MaxTTL: time.Minute}); plan.Err == nil || plan.Passing != passing {
			t.Errorf("%s: %v, that passes %v, want %v", masters, plan.Err, plan.Passing, passing)
		}
	}
}

// A master that has lost something draws above all that the others know; one that goes on is told
// nothing.
func TestDecide_Floors(t *testing.T) {
	t.Parallel()
	for masters, want := range map[string][]int64{
		"votes ready votes": {0, 256, 0}, // the third one knows 200, the next multiple of 64 is 256
		"ready ready ready": {256, 256, 256},
		"fresh fresh fresh": {256, 256, 256},
		"votes stale votes": {0, 256, 0},
		"votes late votes":  {0, 0, 0},
	} {
		for i, s := range Decide(Question{Masters: seen(masters), MaxTTL: time.Minute, Known: true}).Masters {
			if s.Floor != want[i] {
				t.Errorf("%s: master %d draws above %d, want %d", masters, i+1, s.Floor, want[i])
			}
		}
	}
}

// A master is given up with all others that are away, and none that answers is.
func TestDecide_GivesUp(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		masters string
		giveUp  []int
		refusal string
	}{
		{"votes ready away", []int{2}, ""},
		{"votes ready votes", []int{2}, "master c answers, so it is not given up"},
		{"votes votes votes away away", []int{3}, "master e does not answer either"},
		{"votes votes votes away away", []int{3, 4}, ""},
	} {
		plan := Decide(Question{Masters: seen(c.masters), MaxTTL: time.Minute, Known: true, GiveUp: c.giveUp})
		if plan.GivesUp != (c.refusal == "") || (plan.Refusal == nil) != plan.GivesUp || c.refusal != "" && !strings.Contains(plan.Refusal.Error(), c.refusal) {
			t.Errorf("%s, without %v: given up %v, %v, want %q", c.masters, c.giveUp, plan.GivesUp, plan.Refusal, c.refusal)
		}
		if plan.GivesUp && plan.Set.vacant() != len(c.giveUp) {
			t.Errorf("%s, without %v: %d places are vacant", c.masters, c.giveUp, plan.Set.vacant())
		}
	}
}

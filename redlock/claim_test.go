package redlock

import (
	"testing"
	"time"
)

// A master that was taken in counts in a renewal that comes while the time of the last one runs,
// and not in one that was held up: somebody else may have held the name since.
func TestAMasterTakenInRenewsNothingThatIsOver(t *testing.T) {
	t.Parallel()
	now, valid := time.Now(), time.Minute
	for what, q := range map[string]struct {
		kept, joined time.Time
		votes, want  bool
	}{
		"the claim was given it":                   {now, time.Time{}, false, true},
		"and long ago":                             {now.Add(-time.Hour), time.Time{}, false, true},
		"by the last renewal":                      {now, now, true, true},
		"by one before that":                       {now, now.Add(-time.Second), true, true},
		"by one that did not succeed":              {now.Add(-time.Second), now, true, false},
		"and it has no vote":                       {now, now, false, false},
		"and the time of the last renewal is over": {now.Add(-time.Hour), now.Add(-time.Hour), true, false},
	} {
		c := &claim{kept: q.kept, nodes: []nodeState{{has: true, joined: q.joined}}}
		c.renewed(&c.nodes[0], now, q.votes, valid)
		if got := c.good(now, valid) == 1; got != q.want {
			t.Errorf("%s: it counts %v, want %v", what, got, q.want)
		}
	}
}

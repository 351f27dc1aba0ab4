//go:build linux || darwin

package torture

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/torture/flawed"
	"github.com/interlock-go/interlock/torture/internal/servers"
)

// A storm over servers that fail, too. What the servers promise under these faults holds; what they
// do not is excused by name.
func TestStormOverServersThatFail(t *testing.T) {
	if testing.Short() {
		t.Skip("a storm: make proof")
	}
	length := stormLength(t)
	for name, c := range map[string]struct {
		start  string
		faults []string
		excuse []string
	}{
		"one Redis":        {OneRedis, nil, nil},
		"one that evicts":  {OneRedis, []string{FaultEvict, FaultLink}, []string{"V3", "V4"}},
		"Sentinel":         {Sentinel, nil, []string{"V3", "V4"}},
		"Cluster":          {Cluster, nil, []string{"V3", "V4"}},
		"Redisson":         {Redisson, nil, nil},
		"five masters":     {Redlock, nil, nil},
		"and their clocks": {Redlock, []string{FaultClock, FaultForget, FaultLink}, []string{"V3", "V4"}},
	} {
		t.Run(name, func(t *testing.T) {
			trial := stormOver(t, Config{Start: c.start, Faults: c.faults, Processes: 6, Goroutines: 4, want: enough}, "", length)
			withstood(t, trial, c.excuse)
		})
	}
}

// unjudged are the checks that find cases in every storm, and have found none. Of a store without
// tokens nobody asks for V1.
func unjudged(t Trial) []string {
	return slices.DeleteFunc([]string{"V1", "V2", "V3", "V6"}, func(id string) bool {
		c := t.check(id)
		return c.Cases > 0 || id == "V1" && c.ID == ""
	})
}

// enough reports whether a storm has shown what there is to judge.
func enough(t Trial) bool {
	return harmed(t) > 0 && len(unjudged(t)) == 0
}

// withstood looks at what a storm over servers has shown: what they promise held, and what they do
// not is excused by name.
func withstood(t *testing.T, trial Trial, excuse []string) {
	t.Helper()
	kept(t, trial, excuse)
	if harmed(trial) == 0 {
		t.Error("nothing was done to the servers")
	}
}

// kept is withstood where nothing was to be done to the servers, only to the links.
func kept(t *testing.T, trial Trial, excuse []string) {
	t.Helper()
	var b strings.Builder
	trial.print(&b)
	t.Log(b.String())
	if trial.convicted() || len(trial.Errors) > 0 {
		t.Error("the locks did not hold")
	}
	if !slices.Equal(trial.MayFail, excuse) || (trial.Why == "") != (excuse == nil) {
		t.Errorf("may fail %v because %q, want %v, and a reason if there are any", trial.MayFail, trial.Why, excuse)
	}
	for _, id := range unjudged(trial) {
		t.Errorf("not enough cases: %s has seen none", id)
	}
}

// harmed is how much was done to servers.
func harmed(t Trial) (done float64) {
	for _, f := range t.Figures {
		if strings.HasPrefix(f.Name, "faults ") && f.Name != "faults link" {
			done += f.Value
		}
	}
	return done
}

// The lock beside those with a flaw over several masters bears what they must bear, but for a
// restart: each costs it a vote.
func TestStormOverTheFlawlessMajority(t *testing.T) {
	if testing.Short() {
		t.Skip("a storm: make proof")
	}
	t.Parallel()
	trial := stormOver(t, Config{
		Start: Redlock, Faults: []string{FaultLink, FaultPause, FaultForget, FaultOutage}, Processes: 6, Goroutines: 4,
	}, flawed.Prefix+"majority", 6*time.Second)
	var b strings.Builder
	trial.print(&b)
	t.Log(b.String())
	if trial.convicted() || len(trial.Errors) > 0 || trial.check("V3").Cases == 0 {
		t.Error("the lock did not hold")
	}
}

// stormOver runs a storm for d, over the locks of a scheme other than the servers' own if one is
// named, and its twins, which must fail in the same faults, or else the storm shows nothing. Where
// the store says when it granted, V4 goes by that.
func stormOver(t *testing.T, cfg Config, scheme string, d time.Duration) Trial {
	t.Helper()
	cfg.For = d
	c := conductorOver(t, cfg, scheme)
	tells := scheme == "" && c.servers.Tells()
	c.want = func(t Trial) bool {
		return (cfg.want == nil || cfg.want(t)) && (!tells || t.Figure(saidByStore) > 0)
	}
	trials, err := runStorm(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	switch said, cases := trials[0].Figure(saidByStore), trials[0].check("V4").Cases; {
	case tells && said == 0 && cases < 10:
		t.Errorf("the storm was not judged: of %d losses the store says none, when the next got in", cases)
	case (said > 0) != tells:
		t.Errorf("of %d losses the store says %v times when the next got in; does it say that: %v", cases, said, tells)
	}
	for _, w := range trials[1:] {
		var b strings.Builder
		w.print(&b)
		t.Log(b.String())
		switch {
		case w.toothless():
			t.Errorf("the storm was not judged: its twin %s has not failed %s", w.Twin, w.MustFail)
		case !w.Passed():
			t.Errorf("the twin %s fails what it does not lack", w.Twin)
		}
	}
	return trials[0]
}

// twinOver runs one twin of a storm, until it has failed, over the locks of a scheme.
func twinOver(t *testing.T, cfg Config, scheme string, w negativeControl, d time.Duration) Trial {
	t.Helper()
	return only(t, conductorOver(t, cfg, scheme), w, d)
}

func only(t *testing.T, c *conductor, w negativeControl, d time.Duration) Trial {
	t.Helper()
	p := stormy(c)
	w.mayFail = append(w.mayFail, p.harm.excuse...)
	trial, err := play(t.Context(), c, Storm, p, w, d)
	if err != nil {
		t.Fatal(err)
	}
	return trial
}

// conductorOver starts the servers of a configuration, and closes them at the test's end.
func conductorOver(t *testing.T, cfg Config, scheme string) *conductor {
	t.Helper()
	cfg, err := graced(cfg).withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	started, err := servers.Start(t.Context(), cfg.Start, cfg.Faults)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = started.Close() })
	c := &conductor{Config: cfg, out: progress{t}, dir: t.TempDir(), id: "test", servers: started}
	c.Store = started.URL()
	if scheme != "" {
		c.Store = scheme + "://" + started.Host()
		started.UsedBy(scheme)
	}
	closeStore, err := c.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(closeStore)
	return c
}

// What cannot be is an error before anything is started.
func TestServersRefused(t *testing.T) {
	for name, c := range map[string]struct {
		cfg  Config
		want string
	}{
		"a store and servers":   {Config{Store: "mem:", Start: OneRedis}, "one of Store, Start and Flawed"},
		"faults of a store":     {Config{Store: "mem:", Faults: []string{FaultPause}}, "want Start"},
		"an unknown topology":   {Config{Start: "ring"}, "want one of cluster, etcd, mariadb, memcached, postgres, postgres-async, postgres-pooler, postgres-sync, redis, redisson, redlock"},
		"a fault that is not":   {Config{Start: OneRedis, Faults: []string{"fire"}}, "want one of evict, link, pause, restart"},
		"a failover of nothing": {Config{Start: OneRedis, Faults: []string{FaultFailover}}, "want one of evict, link"},
		"an unknown flaw":       {Config{Flawed: []string{"none"}}, "no flaw"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Run(t.Context(), c.cfg, nil); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
		})
	}
}

// Storms over five masters of which three are killed at once, and there again with their data or
// with nothing, and over five that all start again one after another: two never hold a name, tokens
// grow, and everything goes on by itself.
func TestStormOverMajorities(t *testing.T) {
	if testing.Short() {
		t.Skip("a storm: make proof")
	}
	length := stormLength(t)
	for _, fault := range []string{FaultMajority, FaultBlank, FaultRolling} {
		t.Run(fault, func(t *testing.T) {
			cfg := Config{Start: Redlock, Faults: []string{fault, FaultLink}, Processes: 6, Goroutines: 4}
			cfg.want = func(t Trial) bool {
				return enough(t) && t.Figure("went on") > 0 && (fault != FaultRolling || t.Figure("faults rolling") >= 5)
			}
			trial := stormOver(t, cfg, "", max(length, servers.LongRound))
			withstood(t, trial, nil)
			if trial.Figure("went on") == 0 {
				t.Error("nobody has got in after a fault")
			}
			if n := trial.Figure("faults " + FaultRolling); fault == FaultRolling && n < 5 {
				t.Errorf("%v masters started again, want all five", n)
			}
		})
	}
}

// Who counts a master at once that comes back with nothing lets two hold: such a storm bites.
func TestStormOverABlankMajorityBites(t *testing.T) {
	if testing.Short() {
		t.Skip("a storm: make proof")
	}
	cfg := Config{Start: Redlock, Faults: []string{FaultBlank, FaultLink}, Processes: 6, Goroutines: 4}
	w := negativeControl{name: "whose masters count at once", mustFail: "V3", mayFail: everything}
	if trial := twinOver(t, cfg, flawed.Prefix+"rejoin", w, time.Minute); trial.check("V3").Violations == 0 {
		t.Error("V3 has seen no two holders")
	}
}

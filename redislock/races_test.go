package redislock_test

import (
	"testing"

	"github.com/interlock-go/interlock/internal/servertest"
)

// race is an order of events that went wrong somewhere once. The wires force it.
type race struct {
	name string // what happens
	run  func(s scene)
}

// scene is one run of a race.
type scene struct {
	*testing.T
	*stage
}

var races = []race{
	{"a claim is not queued before its subscription is confirmed", queuedBeforeSubscribed},
	{"a claim requeues alone", requeuesAlone},
	{"two take turns, and the line is empty for a moment", lineHasAnEnd},
	{"each of many waiters is handed the lock", marksEveryHandoff},
	{"a grant is pushed while the release of its claim is on its way", grantMeetsRelease},
	{"a grant is pushed while the release of its claim is lost", grantMeetsLostRelease},
	{"a straggling acquire arrives after its release", stragglerAfterRelease},
	{"a grant comes before the answer that its claim waits", grantBeforeAnswer},
	{"a grant comes after the answer that its claim waits", grantAfterAnswer},
	{"a gap is told before the answer that its claim waits", gapBeforeAnswer},
	{"a subscription ends before the answer that its claim waits", subscriptionEndsBeforeAnswer},
	{"a grant is lost and a renewal finds it", grantIsLost},
	{"a release finds a waiter without its subscription", subscriptionCutThenRelease},
	{"a waiter has its subscription again before a release", subscriptionCutAndMended},
	{"only the head of a line looks after a dead holder", onlyHeadLooks},
	{"a dead process in line is skipped", deadInLineIsSkipped},
	{"the first in line leaves behind another program", firstLeavesBehindAnother},
	{"the first in line leaves behind a holder that has died", firstLeavesBehindTheDead},
	{"an expired holder releases what others hold by now", lateRelease},
	{"a try finds an expired holder and a line", tryAtExpiredHolder},
	{"a claim that does not go with a line finds its holder expired", misfitAtExpiredHolder},
	{"a claim that does not go with permits finds their holder expired", misfitAtExpiredPermits},
	{"a line behind another program leaves its value alone", foreignValueIsLeftAlone},
	{"waiters and keys lie on every server", handoffsOnEveryServer},
}

func TestRaces(t *testing.T) {
	t.Parallel()
	for _, topology := range []struct {
		name string
		make func(t *testing.T) *stage
	}{
		{"redis", func(t *testing.T) *stage { t.Helper(); return newStage(t, servertest.Redis(t)) }},
		{"cluster", func(t *testing.T) *stage { t.Helper(); return newClusterStage(t, servertest.RedisCluster(t, 3, 0)) }},
	} {
		t.Run(topology.name, func(t *testing.T) {
			if testing.Short() && topology.name == "cluster" {
				t.Skip("the same races on a Cluster: make proof")
			}
			t.Parallel()
			s := topology.make(t)
			for _, r := range races {
				t.Run(r.name, func(t *testing.T) {
					t.Parallel()
					r.run(scene{t, s})
				})
			}
		})
	}
}

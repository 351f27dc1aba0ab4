package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlock-go/interlock/driver"
)

// Examine implements driver.Examiner. Alarms, and who leads, every member tells everybody; the list
// of alarms only root.
func (d *Driver) Examine(ctx context.Context, _ driver.Exam) ([]driver.Finding, error) {
	bounded, cancel := d.limit(ctx)
	defer cancel()
	list, _, err := twice(bounded, d.client, func(ctx context.Context) (*clientv3.MemberListResponse, error) { return d.client.MemberList(ctx) })
	if err != nil {
		return nil, unchanged(err)
	}
	members := make([]member, len(list.Members))
	var wg sync.WaitGroup
	for i, m := range list.Members {
		members[i] = member{name: m.Name, learner: m.IsLearner, err: errors.New("has not begun")}
		if len(m.ClientURLs) > 0 {
			wg.Go(func() { members[i].status, members[i].err = d.client.Status(bounded, m.ClientURLs[0]) })
		}
	}
	clusters := make([]uint64, len(d.client.Endpoints()))
	for i, endpoint := range d.client.Endpoints() {
		wg.Go(func() {
			if s, err := d.client.Status(bounded, endpoint); err == nil {
				clusters[i] = s.Header.ClusterId
			}
		})
	}
	wg.Wait()
	found := append([]driver.Finding{named(d.client.Endpoints(), clusters), size(members)}, each(members)...)
	for _, check := range []func(context.Context) (driver.Finding, error){d.history, d.rights} {
		f, err := check(ctx)
		if err != nil {
			return found, unchanged(err)
		}
		found = append(found, f)
	}
	return found, nil
}

// member is one, and what it says of itself.
type member struct {
	name    string
	learner bool
	status  *clientv3.StatusResponse
	err     error
}

// named looks whether those that the program names are of one cluster: the client goes to any of
// them.
func named(endpoints []string, clusters []uint64) driver.Finding {
	f := driver.Finding{Title: "cluster", Seen: "those that are named and answer are of one"}
	of := map[uint64][]string{}
	for i, id := range clusters {
		if id != 0 {
			of[id] = append(of[id], endpoints[i])
		}
	}
	if len(of) > 1 {
		var parts []string
		for id, some := range of {
			parts = append(parts, fmt.Sprintf("%s of cluster %x", strings.Join(some, ", "), id))
		}
		slices.Sort(parts)
		f.Level, f.Seen = driver.LevelBad, strings.Join(parts, "; ")
		f.Why = "clusters know nothing of each other, and who asks goes to any that is named: two hold"
		f.Mend = "name the members of one cluster, as etcdctl member list shows them, in all programs"
	}
	return f
}

// size looks at how many members may be lost.
func size(members []member) driver.Finding {
	votes, learners := 0, 0
	for _, m := range members {
		if m.learner {
			learners++
		} else {
			votes++
		}
	}
	f := driver.Finding{Title: "members", Seen: fmt.Sprintf("%d vote, of which %d may be lost; %d are learners", votes, (votes-1)/2, learners)}
	if votes < 3 {
		f.Level = driver.LevelWarn
		f.Why = "when one is lost nobody can lock or renew until it is back, and when it was the only one, and its disk is lost, two hold and tokens begin anew"
		f.Mend = "three members or five: etcdctl member add, one after the other"
	}
	return f
}

// each looks at what every member says of itself.
func each(members []member) (found []driver.Finding) {
	revision := int64(0)
	for _, m := range members {
		if m.err == nil {
			revision = max(revision, m.status.Header.Revision)
		}
	}
	for _, m := range members {
		add := func(f driver.Finding) {
			if len(members) > 1 {
				f.Server = m.name
			}
			found = append(found, f)
		}
		answers := driver.Finding{Code: "E11", Title: "answers", Seen: "it answers, and has a leader"}
		if m.err != nil {
			answers.Level, answers.Seen = driver.LevelWarn, fmt.Sprintf("no answer: %v", m.err)
			answers.Why = "one member more, and there may be no majority: then nobody can lock or renew"
			answers.Mend = "bring it back, or etcdctl member remove and add; where it is only that this machine does not reach it, let it"
			add(answers)
			continue
		}
		alarm := driver.Finding{Code: "O7", Title: "alarms", Seen: fmt.Sprintf("there are none; the store takes %d MiB", m.status.DbSize>>20)}
		said := alarms(m.status.Errors)
		switch {
		case strings.Contains(said, "no leader"):
			answers.Level, answers.Seen = driver.LevelBad, "it has no leader"
			answers.Why = "there is no majority: nobody can lock, renew or release"
			answers.Mend = "bring members back; see etcdctl endpoint status --cluster"
		case strings.Contains(said, "NOSPACE"):
			alarm.Level, alarm.Seen = driver.LevelBad, said
			alarm.Why = "the quota is used up: no new lock can be had, though what is held is renewed and released"
			alarm.Mend = fmt.Sprintf("etcdctl compact %d; etcdctl defrag --cluster; etcdctl alarm disarm; and start the members with --auto-compaction-retention=1h", revision)
		case said != "":
			alarm.Level, alarm.Seen = driver.LevelBad, said
			alarm.Why = "members may not have the same data: two hold"
			alarm.Mend = "take the member out that differs, and add it anew with an empty folder"
		}
		add(answers)
		add(alarm)
		v := driver.Finding{Code: "E3", Title: "version", Seen: "etcd " + m.status.Version}
		if why := faulty(m.status.Version); why != "" {
			v.Level, v.Why, v.Mend = driver.LevelWarn, why, "the newest 3.5 or 3.6"
		}
		add(v)
	}
	return found
}

// alarms are what a member says is wrong, in one order: each tells those of all.
func alarms(said []string) string {
	said = slices.Clone(said)
	for i := range said {
		said[i] = strings.TrimSpace(said[i])
	}
	slices.Sort(said)
	return strings.Join(said, "; ")
}

// faulty says what is wrong with a version.
func faulty(version string) string {
	f := strings.SplitN(version, ".", 3)
	if len(f) < 3 || f[0] != "3" {
		return ""
	}
	minor, _ := strconv.Atoi(f[1])
	digits, _, _ := strings.Cut(f[2], "-")
	patch, err := strconv.Atoi(digits)
	switch {
	case err != nil:
	case minor == 5 && patch < 3:
		return "before 3.5.3 a member that is killed under load can come back with other data than the rest: two hold"
	case minor < 4 || minor == 4 && patch < 28 || minor == 5 && patch < 10:
		return "before 3.4.28 and 3.5.10 a leader that stood still ends leases that were renewed: a holder loses its lock, and hears of it by its next renewal"
	}
	return ""
}

// much is history enough to tell that nobody compacts it.
const much = 16 << 20

// history looks whether it is ever compacted.
func (d *Driver) history(ctx context.Context) (driver.Finding, error) {
	f := driver.Finding{Code: "O7", Title: "history", Seen: "it is compacted, or short"}
	ctx, cancel := d.limit(ctx)
	defer cancel()
	key := d.options.prefix("interlock-doctor")
	_, err := d.get(ctx, key, clientv3.WithRev(1), clientv3.WithCountOnly())
	switch {
	case errors.Is(err, rpctypes.ErrCompacted):
		return f, nil
	case errors.Is(err, driver.ErrRefused):
		f.Level, f.Seen = driver.LevelSkip, "this user may not read "+key
		return f, nil
	case err != nil:
		return f, err
	}
	s, err := d.client.Status(ctx, d.client.Endpoints()[0])
	if err != nil {
		return f, err
	}
	if s.DbSize > much {
		f.Level, f.Seen = driver.LevelWarn, fmt.Sprintf("all %d revisions are there, in %d MiB", s.Header.Revision, s.DbSize>>20)
		f.Why = "each lock adds some 200 bytes, until the quota, usually 2 GiB, is used up: then no lock can be had"
		f.Mend = "--auto-compaction-retention=1h, and etcdctl defrag now and then"
	}
	return f, nil
}

// rights tries what a lock writes, under a condition that is never true: what is refused is refused
// before that is looked at.
func (d *Driver) rights(ctx context.Context) (driver.Finding, error) {
	f := driver.Finding{Title: "rights", Seen: "this user may write what locks take"}
	for _, key := range []string{d.options.session(1), d.options.prefix("interlock-doctor") + "1"} {
		err := d.never(ctx, key)
		switch {
		case errors.Is(err, rpctypes.ErrPermissionDenied) && key == d.options.session(1):
			f.Level, f.Seen = driver.LevelBad, "this user may not write "+key
			f.Why = "every client writes there who it is: no lock can be had"
			f.Mend = "etcdctl role grant-permission ROLE --prefix=true readwrite " + d.options.Namespace + reserved + "/, and the names"
			return f, nil
		case errors.Is(err, rpctypes.ErrPermissionDenied):
			f.Level, f.Seen = driver.LevelSkip, "this user may not write "+key+"; whether he may write the names of his locks was not tried"
		case errors.Is(err, driver.ErrUnable):
			f.Level, f.Seen = driver.LevelSkip, "the store refuses all writes: see its alarms"
			return f, nil
		case err != nil:
			return f, err
		}
	}
	return f, nil
}

// never writes a key if that has a version that none has.
func (d *Driver) never(ctx context.Context, key string) error {
	ctx, cancel := d.limit(ctx)
	defer cancel()
	_, _, err := twice(ctx, d.client, func(ctx context.Context) (*clientv3.TxnResponse, error) {
		return d.client.Txn(ctx).If(clientv3.Compare(clientv3.Version(key), "=", -1)).Then(clientv3.OpPut(key, "")).Commit()
	})
	return err
}

package zklock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/zk"
)

// Examine implements driver.Examiner. What the ensemble is, and what this user may do, the session
// for looks is told. What a server is, it says to four-letter words, of which it answers only srvr
// unless its 4lw.commands.whitelist has more.
func (d *Driver) Examine(ctx context.Context, e driver.Exam) ([]driver.Finding, error) {
	x := &examination{Exam: e, d: d, servers: make([]server, len(d.addrs))}
	var all sync.WaitGroup
	for i, addr := range d.addrs {
		all.Go(func() { x.servers[i] = d.question(ctx, addr) })
	}
	all.Wait()
	if serves := slices.ContainsFunc(x.servers, func(s server) bool { return !s.silent && !s.idle }); !serves {
		if err := x.nobody(); err != nil {
			return nil, err
		}
		return x.found, nil
	}
	for _, check := range []func(context.Context) error{x.members, x.named, x.each, x.session, x.rights, x.lists, x.leftovers} {
		if err := check(ctx); err != nil {
			return x.found, fmt.Errorf("zklock: examine: %w", err)
		}
	}
	return x.found, nil
}

// members looks at how many servers may be lost.
func (x *examination) members(ctx context.Context) error {
	f := driver.Finding{Title: "members"}
	config := zk.Get("/zookeeper/config", false)
	if err := x.d.reader.ask(ctx, config); err != nil {
		return err
	}
	if config.Code != 0 {
		f.Level, f.Seen = driver.LevelSkip, fmt.Sprintf("this user may not read /zookeeper/config: %v", config.Code)
		x.add(f)
		return nil //nolint:nilerr // it is a finding
	}
	x.membership = membersOf(string(config.Data))
	votes := max(x.votes, 1)
	f.Seen = fmt.Sprintf("%d vote, of which %d may be lost; %d observe", votes, (votes-1)/2, x.observers)
	switch {
	case x.weighted:
		f.Seen = fmt.Sprintf("%d vote, in groups or by weights; %d observe", votes, x.observers)
	case x.votes == 0, votes < 3:
		f.Level = driver.LevelWarn
		if x.votes == 0 {
			f.Seen = "a server that stands alone"
		}
		f.Why = "when one is lost nobody can lock or renew until it is back; and when it was the only one, and its disk is lost, two hold and tokens begin anew"
		f.Mend = "three members or five: server.1= to server.3= in zoo.cfg, or reconfig -add"
	case votes%2 == 0:
		f.Level = driver.LevelWarn
		f.Why = fmt.Sprintf("no more may be lost than of %d, and there is one more that can be", votes-1)
		f.Mend = "one member more or less; or have it observe"
	}
	x.add(f)
	return nil
}

// session looks at how long the servers keep a session that is asked for as one with locks is. It
// is gone at the end.
func (x *examination) session(ctx context.Context) error {
	ctx, cancel := x.d.within(ctx)
	defer cancel()
	want := x.d.timeout(x.TTL)
	c, err := zk.Dial(ctx, x.d.connection(want))
	if err != nil {
		return err
	}
	has := c.Timeout()
	if err := c.Close(ctx); err != nil {
		return err
	}
	f := driver.Finding{Code: "A10", Title: "session", Seen: fmt.Sprintf("of %v, as was asked for", has)}
	if has > want {
		f.Level, f.Seen = driver.LevelWarn, fmt.Sprintf("the servers keep one for %v where %v was asked for (minSessionTimeout, two ticks where it is not set)", has, want)
		f.Why = "who has died is in the way for that much longer"
		f.Mend = fmt.Sprintf("a TTL of %v or more; or minSessionTimeout=%d and a shorter tickTime in zoo.cfg", (has*2/3 + time.Second - 1).Truncate(time.Second), want.Milliseconds())
	}
	x.add(f)
	return nil
}

// never makes nodes, and then wants one that nobody has: so nothing is made, and what is refused is
// refused before. It returns what each of the nodes was answered, 0 where it could be made.
func (x *examination) never(ctx context.Context, nodes ...*zk.Call) (codes []zk.Code, err error) {
	all := zk.Multi(append(slices.Clone(nodes), zk.Check(x.d.base+"/"+driver.NewID(), -1))...)
	if err := x.d.reader.ask(ctx, all); err != nil {
		return nil, err
	}
	for _, node := range nodes {
		if node.Code == zk.Inconsistent {
			node.Code = 0
		}
		codes = append(codes, node.Code)
	}
	return codes, nil
}

// rights tries what a lock makes.
func (x *examination) rights(ctx context.Context) error {
	f := driver.Finding{Title: "rights", Seen: "this user may make what locks take"}
	dir := x.d.base + "/interlock-doctor-" + driver.NewID()
	codes, err := x.never(ctx, zk.Create(dir, nil, x.d.parents, x.d.acl), zk.Create(dir+"/a", nil, zk.Ephemeral, x.d.acl))
	if err != nil {
		return err
	}
	for _, code := range codes {
		switch code {
		case 0:
			continue
		case zk.NoAuth:
			f.Seen, f.Mend = "this user may make no nodes below "+x.d.root(), "zkCli.sh setAcl "+x.d.root()+" with the rights c and r for this user"
		case zk.InvalidACL:
			f.Seen, f.Mend = "what is made is to be this user's own (acl=auth), and nobody has logged in", "a user in the URL, or acl=world"
		case zk.QuotaExceeded:
			f.Code, f.Seen, f.Mend = "O7", "the quota of "+x.d.root()+" is used up", "zkCli.sh listquota "+x.d.root()+", and a higher one: setquota; or delete what nobody needs there"
		case zk.LocalSession:
			f.Seen, f.Mend = "the servers keep sessions to themselves (localSessionsEnabled)", "localSessionsUpgradingEnabled=true in zoo.cfg"
		default:
			f.Seen, f.Mend = code.Error(), "as the message says"
		}
		f.Level, f.Why = driver.LevelBad, "no lock can be had"
		break
	}
	x.add(f)
	return nil
}

// lists looks at whether access lists count. Nobody may make a node below the configuration, but
// for the servers' own superuser.
func (x *examination) lists(ctx context.Context) error {
	f := driver.Finding{Title: "access lists", Seen: "what is made is everybody's, as was asked for"}
	if x.d.acl == zk.Creators {
		f.Seen = "what is made is this user's own"
		codes, err := x.never(ctx, zk.Create("/zookeeper/config/interlock-doctor-"+driver.NewID(), nil, zk.Persistent, zk.Anyone))
		if err != nil {
			return err
		}
		if codes[0] == 0 {
			f.Level, f.Seen = driver.LevelWarn, "the servers do not look at access lists (zookeeper.skipACL), or this user is their superuser"
			f.Why = "whoever can connect can take a lock from its holder; or whoever has this program's password everything that is there"
			f.Mend = "start the servers without zookeeper.skipACL; and have a user for locks alone"
		}
	}
	x.add(f)
	return nil
}

// counting bounds the look for names that are left over.
const counting = 3 * time.Second

// leftovers counts nodes of locks that nobody stands in. The servers remove a container a minute or
// two after its last child; those of kazoo stay.
func (x *examination) leftovers(ctx context.Context) error {
	f := driver.Finding{Title: "leftovers"}
	all := zk.Children(x.d.root(), false)
	if err := x.d.reader.ask(ctx, all); err != nil {
		return err
	}
	if all.Code != 0 {
		f.Level, f.Seen = driver.LevelSkip, fmt.Sprintf("the names below %s cannot be listed: %v", x.d.root(), all.Code)
		x.add(f)
		return nil
	}
	nodes := slices.DeleteFunc(all.Children, func(node string) bool { // the servers' own, for one
		_, ok := nameOf(node, x.d.base == "")
		return !ok
	})
	f.Seen = fmt.Sprintf("%d names have a node", len(nodes))
	if len(nodes) < x.d.many {
		x.add(f)
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, counting)
	defer cancel()
	empty, seen := 0, 0
	for some := range slices.Chunk(nodes, lookBatch) {
		var gets []*zk.Call
		for _, node := range some {
			gets = append(gets, zk.Get(x.d.base+"/"+node, false))
		}
		if err := x.d.reader.ask(bounded, gets...); err != nil {
			if ctx.Err() == nil && bounded.Err() != nil {
				break
			}
			return err
		}
		for _, get := range gets {
			if seen++; get.Err == nil && get.Stat.Owner == 0 && get.Stat.Children == 0 {
				empty++
			}
		}
	}
	f.Seen = fmt.Sprintf("%d names have a node; of %d that were looked at nobody stands in %d", len(nodes), seen, empty)
	if empty >= x.d.many {
		f.Level = driver.LevelWarn
		f.Why = "each list of who holds goes through them, and the servers keep them in memory; kazoo removes none of those that it makes"
		f.Mend = "delete what is empty, as by zkCli.sh; containers go by themselves unless znode.container.checkIntervalMs is 0"
	}
	x.add(f)
	return nil
}

// nobody says why nobody serves: an error where no server answers.
func (x *examination) nobody() error {
	var all []error
	idle := 0
	for _, s := range x.servers {
		all = append(all, s.err)
		if s.idle {
			idle++
		}
	}
	if idle == 0 {
		return fmt.Errorf("zklock: examine: %w: %w", driver.ErrNotSent, errors.Join(all...))
	}
	x.add(driver.Finding{
		Title: "answers", Level: driver.LevelBad, Seen: strconv.Itoa(idle) + " of the " + strconv.Itoa(len(x.servers)) + " servers that are named answer, and serve nobody",
		Why:  "there is no majority: nobody can lock, renew or release, and leases end by their own timers",
		Mend: "bring members back; zkServer.sh status says what each is",
	})
	return nil
}

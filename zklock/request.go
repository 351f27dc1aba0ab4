package zklock

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/interlock-go/interlock/internal/zk"
)

// creation returns the request for a claim's node in line.
func (s *session) creation(c *claim) *zk.Call {
	return zk.Create(c.dir+"/"+c.prefix+c.tag, encode(s.owner, c.Claim), zk.EphemeralSequential, s.acl)
}

// launch sends requests in one flight, of which one gives c its nodes, or others than it has, and
// finds out what became of it.
func (s *session) launch(ctx context.Context, c *claim, call *zk.Call, makes []*zk.Call, flight ...*zk.Call) error {
	s.mu.Lock()
	s.unwatchOwn(c) // that its node is removed now is no loss
	s.unwatch(c)
	c.asked, c.makes = call, makes
	s.mu.Unlock()
	if err := s.client.Send(ctx, flight...); err != nil {
		s.mu.Lock()
		c.asked = nil
		s.mu.Unlock()
		return err
	}
	err := zk.Wait(ctx, flight...)
	return cmp.Or(s.resolve(ctx, c), err)
}

// resolve finds out what became of the request that gives c its nodes, if that is not known. After
// a lost answer it reads the line behind a Sync, and finds the nodes by the claim's prefix.
func (s *session) resolve(ctx context.Context, c *claim) error {
	s.mu.Lock()
	call, makes := c.asked, c.makes
	s.mu.Unlock()
	if call == nil {
		return nil
	}
	err := call.Wait(ctx)
	select {
	case <-call.Done():
		err = call.Err // also if ctx has ended at that moment
	default:
		return err
	}
	var nodes []string
	var czxid int64
	switch {
	case err == nil:
		for _, made := range makes {
			nodes, czxid = append(nodes, made.Path), made.Stat.Czxid
		}
	case errors.Is(err, zk.ErrUnanswered):
		sync, reads := zk.Sync(c.top), c.readLine()
		if err := s.client.Do(ctx, append([]*zk.Call{sync}, reads...)...); err != nil {
			return err
		}
		line, err := c.line(reads)
		if err != nil || sync.Err != nil {
			return cmp.Or(err, sync.Err)
		}
		if at := c.find(line); at >= 0 {
			nodes = line[at].nodes
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.asked = nil; nodes != nil {
		s.placed(c, nodes, czxid)
	}
	return nil
}

// consistent reads the line of c. The parts of a semaphore are read one after the other: a claim
// that leaves one and enters the other meanwhile would be seen in neither, so the first part is
// read again, to see that it has not changed.
func (s *session) consistent(ctx context.Context, c *claim) (reads []*zk.Call, err error) {
	for range attempts {
		reads = c.readLine()
		if c.leases == "" {
			return reads, s.client.Do(ctx, reads...)
		}
		again := zk.Children(c.dir, false)
		if err := s.client.Do(ctx, append(slices.Clone(reads), again)...); err != nil || again.Stat.Pzxid == reads[0].Stat.Pzxid {
			return reads, err
		}
	}
	return reads, nil // it changes all the time, so somebody is there
}

// attempts bounds how often a request is repeated since something else was faster, such as the
// removal of the lock's node when a claim is to be put below it.
const attempts = 10

// remove removes nodes, whatever was written to them.
func (s *session) remove(ctx context.Context, nodes []string) error {
	out := deletes(nodes, -1)
	if err := s.client.Do(ctx, out...); err != nil {
		return err
	}
	_, err := refusal(out)
	return err
}

// deletes returns the requests that remove nodes, the first of them only if it is of that version.
func deletes(nodes []string, version int32) []*zk.Call {
	calls := make([]*zk.Call, len(nodes))
	for i, node := range nodes {
		calls[i] = zk.Delete(node, version)
		version = -1
	}
	return calls
}

// refusal returns why nodes were not removed. That one is gone, or was written to, is no error but
// a code.
func refusal(out []*zk.Call) (code zk.Code, err error) {
	for _, call := range out {
		switch call.Code {
		case zk.NoNode, zk.BadVersion:
			code = call.Code
		case zk.Inconsistent:
		default:
			err = cmp.Or(err, call.Err)
		}
	}
	return code, err
}

package etcdlock

import (
	"context"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlock-go/interlock/driver"
)

// owners keeps who the session of a lease is. A lease never has another owner, so a cached one is
// always right.
type owners struct {
	*server

	mu    sync.Mutex
	known map[clientv3.LeaseID]driver.Owner // at most maxOwners
}

const maxOwners = 1000

// of returns the owner of a lease, or the zero value if it cannot be read.
func (o *owners) of(ctx context.Context, id clientv3.LeaseID) driver.Owner {
	o.mu.Lock()
	owner, known := o.known[id]
	o.mu.Unlock()
	if known {
		return owner
	}
	ctx, cancel := o.limit(ctx)
	defer cancel()
	r, err := o.get(ctx, o.options.session(id))
	if err != nil {
		return owner
	}
	for _, kv := range r.Kvs {
		var p person
		if ours, err := decode(kv.Value, &p); ours && err == nil {
			owner = driver.DecodeOwner(p.Owner)
		}
	}
	o.set(id, owner)
	return owner
}

// set records the owner of a lease.
func (o *owners) set(id clientv3.LeaseID, owner driver.Owner) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.known) > maxOwners {
		clear(o.known)
	}
	o.known[id] = owner
}

package interlockclientgo

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/interlock-go/interlock"
)

// Lock is a resourcelock.Interface for one elector at a time.
//
// A leadership begins with the Create or Update that gets the lease, and ends when the elector says that it is over, or with
// the process. In between the lease may be lost; the elector goes on trying for RenewDeadline, and each try fails then. It must
// not get another lease for the same leadership: others may have led, and the work would not be told.
type Lock struct {
	mutex    *interlock.Mutex
	election *interlock.Election
	name     string
	identity string

	mu      sync.Mutex
	lease   *interlock.Lease // of this leadership, lost or not
	record  resourcelock.LeaderElectionRecord
	leaving bool // the leadership is over, and the lease is released once its work is
	tasks   bool // there is a Task, so that it is known when that is
	running int  // of them
}

var _ resourcelock.Interface = (*Lock)(nil)

// New returns the election of this name, in which the process stands as identity: what other electors are told of the leader,
// as the lease's note. It is no proof of anything, so two processes of one identity do not lead at once. New fails for a name,
// an identity or options that cannot be.
func New(client *interlock.Client, election, identity string, o ...interlock.LockOption) (*Lock, error) {
	if identity == "" {
		return nil, fmt.Errorf("interlockclientgo: election %q: no identity", election)
	}
	// A leader has a claim of its own, which shows its identity, and not one that the goroutines of the client pass on.
	m := client.Mutex(election, append(slices.Clone(o), interlock.Isolated(), interlock.Note(identity))...)
	if err := m.Err(); err != nil {
		return nil, err
	}
	return &Lock{mutex: m, election: client.Election(election), name: election, identity: identity}, nil
}

// Get implements resourcelock.Interface. While this process leads it answers from the lease, and else from the store: an error
// for which k8s.io/apimachinery/pkg/api/errors.IsNotFound is true says that nobody leads. Of a store that cannot be looked into
// it always says so, and Create is the way to know.
func (l *Lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, err := l.look(ctx)
	if err != nil {
		return nil, nil, err
	}
	raw, err := json.Marshal(record)
	return record, raw, err
}

func (l *Lock) look(ctx context.Context) (*resourcelock.LeaderElectionRecord, error) {
	if record := l.own(); record != nil {
		return record, nil
	}
	leader, err := l.election.Leader(ctx)
	if errors.Is(err, errors.ErrUnsupported) || err == nil && leader == (interlock.Leader{}) {
		return nil, apierrors.NewNotFound(resource, l.name)
	}
	if err != nil {
		return nil, err
	}
	who := cmp.Or(leader.Note, leader.Owner.Name, "another program")
	if who == l.identity { // which has not this lease
		who += " (another process)"
	}
	return &resourcelock.LeaderElectionRecord{
		HolderIdentity:       who,
		LeaseDurationSeconds: 15,
		AcquireTime:          metav1.NewTime(leader.Since),
		RenewTime:            metav1.Now(), // the store has it now: no elector needs to find out by waiting
	}, nil
}

// own returns the record of this process while it leads.
func (l *Lock) own() *resourcelock.LeaderElectionRecord {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lease == nil || l.leaving || l.lease.Err() != nil {
		return nil
	}
	record := l.record
	return &record
}

// Create implements resourcelock.Interface. It is Update: there is nothing to be created.
func (l *Lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, record)
}

// Update implements resourcelock.Interface. With this process as the holder it takes the lease, or says whether that is still
// guaranteed: the error matches interlock.ErrLost, until the elector has stopped leading. With an empty holder it releases the
// lease, as soon as no Task runs. Where another one leads IsConflict of k8s.io/apimachinery/pkg/api/errors is true for the error.
func (l *Lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch record.HolderIdentity {
	case "":
		l.leaving = l.lease != nil
		l.leave()
		return nil
	case l.identity:
	default:
		return l.conflict(fmt.Errorf("%q is not the identity of this lock, %q", record.HolderIdentity, l.identity))
	}
	if l.leaving {
		return l.conflict(errors.New("the work of this process's former leadership still runs"))
	}
	if l.lease == nil {
		lease, err := l.mutex.TryLock(ctx)
		if errors.Is(err, interlock.ErrHeld) {
			return l.conflict(err)
		}
		if err != nil {
			return err
		}
		l.lease = lease
	}
	l.record = record
	return l.lease.Err()
}

// leave ends a leadership that is over, unless its work still runs. The mutex is held.
func (l *Lock) leave() {
	if l.leaving && l.running == 0 {
		_ = l.lease.Release() // what is not confirmed is free when its time is over
		l.lease, l.leaving = nil, false
	}
}

// RecordEvent implements resourcelock.Interface. Events go nowhere; but "stopped leading" is how an elector says that it has
// ended. If it has not released the lease, that ends when the Task has returned, or, where there is none, after LeaseDuration,
// as that of client-go's own locks does.
func (l *Lock) RecordEvent(event string) {
	if event != "stopped leading" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lease == nil || l.leaving {
		return
	}
	l.leaving = true
	if l.tasks || l.lease.Err() != nil {
		l.leave()
		return
	}
	time.AfterFunc(time.Duration(l.record.LeaseDurationSeconds)*time.Second, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.leave()
	})
}

// Identity implements resourcelock.Interface.
func (l *Lock) Identity() string { return l.identity }

// Describe implements resourcelock.Interface: it returns the name of the election.
func (l *Lock) Describe() string { return l.name }

// Fence returns the token of this process's leadership, larger than those of all earlier ones, and 0 while it does not lead. In a
// Task the context has it: interlock.Fence(ctx, election).
func (l *Lock) Fence() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lease == nil || l.lease.Err() != nil {
		return 0
	}
	return l.lease.Fence()
}

// Task returns what OnStartedLeading is to be. The context of fn ends when the leadership can no longer be guaranteed, which is
// before others lead, and when the elector ends its own; it has the values of that, and the token. The lease is released when
// fn has returned and the elector has stopped, whether or not the elector has ReleaseOnCancel. Where the leadership was lost
// before fn could begin, it is not called.
func (l *Lock) Task(fn func(context.Context)) func(context.Context) {
	l.mu.Lock()
	l.tasks = true
	l.mu.Unlock()
	return func(elector context.Context) {
		lease := l.begin()
		if lease == nil {
			return
		}
		defer l.end() // also when fn panics
		ctx, cancel := context.WithCancelCause(values{lease.Context(), elector})
		defer cancel(nil)
		defer context.AfterFunc(elector, func() { cancel(context.Cause(elector)) })()
		fn(ctx) //nolint:contextcheck // it ends with the elector's, too
	}
}

// begin counts a Task under the lease that it returns, or returns nil.
func (l *Lock) begin() *interlock.Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lease == nil || l.leaving || l.lease.Err() != nil {
		return nil
	}
	l.running++
	return l.lease
}

func (l *Lock) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running--
	l.leave()
}

// values is a context that has the values of another one behind its own.
type values struct {
	context.Context //nolint:containedctx // the lease's

	elector context.Context //nolint:containedctx // for its values
}

func (v values) Value(key any) any {
	if x := v.Context.Value(key); x != nil {
		return x
	}
	return v.elector.Value(key)
}

// resource is what errors in the manner of Kubernetes speak of.
var resource = schema.GroupResource{Group: "interlock", Resource: "elections"}

func (l *Lock) conflict(why error) error { return apierrors.NewConflict(resource, l.name, why) }

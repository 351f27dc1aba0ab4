//go:build linux || darwin

package torture

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/torture/internal/servers"
	"github.com/interlock-go/interlock/torture/internal/worker"
)

// conductor is what the rounds of a run have in common: the configuration, the store, its servers.
type conductor struct {
	Config
	out    io.Writer
	dir    string // of logs and guarded files
	store  driver.Driver
	traits driver.Traits
	id     string // in the names of this run
	rounds int

	servers *servers.Servers // that were started for this; nil when the store was there
	was     *baseline        // of those, before the workers came; nil when nobody counts
	placed  int              // names since
}

// baseline is what servers have before the workers come.
type baseline struct {
	servers.Census
	each int // entries that stay of a name that was locked and waited for, such as its counter
}

// open opens the conductor's own connection to the store.
func (c *conductor) open(ctx context.Context) (closeStore func(), err error) {
	if c.store, err = worker.OpenStore(ctx, c.Store); err != nil {
		return nil, err
	}
	store := c.store
	c.traits = store.Traits()
	given := c.Grace
	c.Config = c.fit(c.traits)
	if given == 0 { // the store may keep a session for less than its TTL
		if session, err := store.Open(ctx, driver.Spec{ID: driver.NewID(), TTL: c.TTL, Owner: driver.Owner{Name: "torture conductor"}}); err == nil {
			c.Grace = min(c.Grace, session.Valid()/3)
			_ = session.Close(ctx)
		}
	}
	return func() { _ = c.store.Close(context.WithoutCancel(ctx)) }, nil
}

// say writes a line of progress.
func (c *conductor) say(format string, args ...any) {
	if c.out != nil {
		fmt.Fprintf(c.out, format+"\n", args...)
	}
}

// place makes a directory for one round, and names that were not used before.
func (c *conductor) place(names int) (dir string, locks, files []string, err error) {
	c.rounds++
	c.placed += names
	dir, err = os.MkdirTemp(c.dir, "round-")
	for i := range names {
		locks = append(locks, fmt.Sprintf("torture/%s/%d/%d", c.id, c.rounds, i))
		files = append(files, fmt.Sprintf("%s/number-%d", dir, i))
	}
	return dir, locks, files, err
}

// tokens reports whether the store has them.
func (c *conductor) tokens() bool { return c.traits.Fence != 0 }

// guard is the best guard of the number that there is in this store.
func (c *conductor) guard() worker.GuardKind {
	if c.tokens() {
		return worker.Fenced
	}
	return worker.Unfenced
}

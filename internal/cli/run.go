package cli

import (
	"context"
	"strings"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
)

type runCommand struct {
	Name    string         `arg:"" help:"The lock's name."`
	Command []string       `arg:"" optional:"" passthrough:"partial" help:"The command and its arguments, after --."`
	Try     bool           `short:"n" aliases:"nb,nonblock" help:"Do not wait." xor:"wait"`
	Wait    *time.Duration `short:"w" aliases:"timeout" type:"wait" help:"Wait no longer than this: seconds, or a duration as 500ms. Default: as long as it takes." placeholder:"30s" xor:"wait"`
	Shared  bool           `short:"s" help:"Share the lock with others that share it." xor:"kind"`
	Permits *int           `help:"Let so many run at once." placeholder:"N" xor:"kind"`

	// For lines that were flock's.
	Exclusive bool `short:"x" aliases:"e" help:"Share the lock with nobody, as is done anyway." xor:"kind"`
	holdFlags
}

// Help implements kong.HelpProvider.
func (*runCommand) Help() string {
	return `The command gets stdin, the signals that this one gets, and in its environment INTERLOCK_NAME, INTERLOCK_FENCE, the token, and INTERLOCK_HELD: the leases of the runs around it and its own, one to a line, as name, token and store with tabs between them. Its exit status is passed on, 128 and the signal's number for a signal, 127 or 126 if it cannot be executed. A store that cannot be reached is tried again for as long as --wait says, 1 s at least, or for 15 s; with --try once. The flags have their names of flock(1), too: -e, --nb, --nonblock, --timeout, --conflict-exit-code. A name that a script has in a variable stands between two --, so that it may begin with a dash: interlock run -- "$NAME" -- command.` + "\n\n" + statusHelp()
}

// Run runs a command under a lock.
func (c *runCommand) Run(ctx context.Context, t terminal, common *commonFlags) error {
	return c.status(c.run(ctx, t, common))
}

func (c *runCommand) run(ctx context.Context, t terminal, common *commonFlags) error {
	loud := t
	if c.Quiet {
		t = t.mute()
	}
	words, err := commandWords(common.args, "run", c.Name, c.Command)
	if err != nil {
		return err
	}
	if len(words) == 0 && c.Name != "" && strings.Trim(c.Name, "0123456789") == "" {
		return usage("%w; %s is no file descriptor but a name: a shell cannot renew a lock, so put what it protects into a function or script and let interlock run that", errNoCommand, c.Name)
	}
	options, err := c.options(words)
	if err != nil {
		return err
	}
	j := &job{wanted: wanted{name: c.Name, kind: driver.Mutex}, storeFlags: &common.storeFlags, t: t, loud: loud, args: words, flags: &c.holdFlags}
	switch {
	case c.Shared:
		j.kind = driver.Read
	case c.Permits != nil:
		j.kind, j.limit = driver.Permit, *c.Permits
	}
	if c.Try {
		c.Wait = new(time.Duration)
	}
	if c.Wait != nil {
		j.patience = patienceOf(*c.Wait)
	}
	began := time.Now()
	defer j.close()
	return j.run(ctx, func(client *interlock.Client) (locker, error) {
		if c.Wait != nil { // less what the opening took; but for a lock that is free there is time
			options = append(options, interlock.Wait(max(*c.Wait-time.Since(began), min(*c.Wait, leastPatience/2))))
		}
		switch {
		case c.Shared:
			m := client.RWMutex(c.Name, options...)
			return m.RLock, m.Err()
		case c.Permits != nil:
			s := client.Semaphore(c.Name, *c.Permits, options...)
			return func(ctx context.Context) (*interlock.Lease, error) { return s.Acquire(ctx, 1) }, s.Err()
		}
		m := client.Mutex(c.Name, options...)
		return m.Lock, m.Err()
	})
}

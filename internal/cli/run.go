package cli

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/guard"
	"github.com/interlock-go/interlock/internal/opening"
)

// holdFlags are the choices for a lock under which a command runs.
type holdFlags struct {
	TTL      *time.Duration `help:"How long the lock outlives a machine that does not answer any more. Default: 15s, or what the store keeps that is nearest to it." name:"ttl" placeholder:"15s"`
	Grace    *time.Duration `help:"Time to stop the command in when the lock is lost: SIGTERM, then SIGKILL before it is over. At most a third of --ttl. Default: a tenth of it." placeholder:"1.5s"`
	MinHold  *time.Duration `help:"Keep the lock for at least so long, however fast the command is." placeholder:"1m"`
	MaxHold  *time.Duration `help:"Stop the command and let the lock go after so long." placeholder:"1h"`
	Note     *string        `help:"What others are told about this holder. Default: the command's name."`
	KillRest bool           `help:"Kill what the command leaves running behind it, instead of waiting for it; and, before it starts, what a former one left, where the store sees that." xor:"rest"`
	Quiet    bool           `short:"q" help:"Say nothing where the command has run, or where another has the lock; but that a former job still runs beside it."`

	RefuseRest bool `help:"Do not start the command beside what a former one left running: end with the status of --exit-held." xor:"rest"`

	ExitHeld  int `short:"E" aliases:"conflict-exit-code" default:"75" help:"Exit status when the lock was not acquired." placeholder:"75"`
	ExitLost  int `default:"76" help:"Exit status when the lock was lost and the command stopped." placeholder:"76"`
	ExitStore int `default:"69" help:"Exit status when the store cannot be used." placeholder:"69"`
	ExitData  int `default:"65" help:"Exit status when what stands in the store is no lock, or is damaged." placeholder:"65"`
	ExitUsage int `default:"64" help:"Exit status when the command line is wrong." placeholder:"64"`
}

type runCommand struct {
	Name    string         `arg:"" help:"The lock's name."`
	Command []string       `arg:"" optional:"" passthrough:"partial" help:"The command and its arguments, after --."`
	Try     bool           `short:"n" aliases:"nb,nonblock" help:"Do not wait." xor:"wait"`
	Wait    *time.Duration `short:"w" aliases:"timeout" type:"wait" help:"Wait no longer than this: seconds, or a duration as 500ms. Default: as long as it takes." placeholder:"30s" xor:"wait"`
	Shared  bool           `short:"s" help:"Share the lock with others that share it." xor:"kind"`
	Permits *int           `help:"Let so many run at once." placeholder:"N" xor:"kind"`

	Exclusive bool `short:"x" aliases:"e" help:"Share the lock with nobody, as is done anyway." xor:"kind"` // for lines that were flock's
	holdFlags
}

// Help implements kong.HelpProvider.
func (*runCommand) Help() string {
	return `The command gets stdin, the signals that this one gets, and in its environment INTERLOCK_NAME, INTERLOCK_FENCE, the token, and INTERLOCK_HELD: the leases of the runs around it and its own, one to a line, as name, token and store with tabs between them. Its exit status is passed on, 128 and the signal's number for a signal, 127 or 126 if it cannot be executed. A store that cannot be reached is tried again for as long as --wait says, 1 s at least, or for 15 s; with --try once. The flags have their names of flock(1), too: -e, --nb, --nonblock, --timeout, --conflict-exit-code. A name that a script has in a variable stands between two --, so that it may begin with a dash: interlock run -- "$NAME" -- command.` + "\n\n" + statusHelp()
}

// Run runs a command under a lock.
func (c *runCommand) Run(ctx context.Context, t terminal, line *commandLine) error {
	return c.status(c.run(ctx, t, line))
}

func (c *runCommand) run(ctx context.Context, t terminal, line *commandLine) error {
	loud := t
	if c.Quiet {
		t = t.mute()
	}
	words, err := line.words("run", c.Name, c.Command)
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
	j := &job{line: line, t: t, loud: loud, name: c.Name, kind: driver.Mutex, args: words, flags: &c.holdFlags}
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
		j.bounded, j.once, j.patience = true, *c.Wait == 0, patience(*c.Wait)
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

var errNoCommand = errors.New("a command is needed: interlock run NAME -- command arguments…")

// options are the lock's options, for a command.
func (f *holdFlags) options(command []string) ([]interlock.LockOption, error) {
	if len(command) == 0 {
		return nil, usage("%w", errNoCommand)
	}
	for flag, status := range map[string]int{
		"held": f.ExitHeld, "lost": f.ExitLost, "store": f.ExitStore, "data": f.ExitData, "usage": f.ExitUsage,
	} {
		if status < 0 || status > 255 {
			return nil, usage("--exit-%s is %d: want 0 to 255", flag, status)
		}
	}
	note := filepath.Base(command[0])
	if f.Note != nil {
		note = *f.Note
	}
	options := []interlock.LockOption{interlock.Note(note)}
	if f.TTL != nil {
		options = append(options, interlock.TTL(*f.TTL))
	}
	if f.Grace != nil {
		options = append(options, interlock.Grace(*f.Grace))
	}
	if f.MinHold != nil {
		options = append(options, interlock.MinHold(*f.MinHold))
	}
	if f.MaxHold != nil {
		options = append(options, interlock.MaxHold(*f.MaxHold))
	}
	return options, nil
}

// settle sets the TTL that the lease has where none was chosen: that of a client without options.
func (f *holdFlags) settle(t driver.Traits) {
	if f.TTL != nil {
		return
	}
	ttl := max(15*time.Second, t.MinTTL)
	if t.MaxTTL > 0 {
		ttl = min(ttl, t.MaxTTL)
	}
	f.TTL = &ttl
}

// grace is the grace that the lease has, once the TTL is settled.
func (f *holdFlags) grace() time.Duration {
	if f.Grace != nil {
		return *f.Grace
	}
	return min(max(*f.TTL/10, 2*time.Millisecond), *f.TTL/3)
}

// status replaces interlock's own exit statuses by those that were asked for.
func (f *holdFlags) status(err error) error {
	var command *commandError
	if err == nil || errors.As(err, &command) {
		return err
	}
	status := statusOf(err)
	switch status {
	case exitHeld:
		status = f.ExitHeld
	case exitLost:
		status = f.ExitLost
	case exitStore:
		status = f.ExitStore
	case exitData:
		status = f.ExitData
	case exitUsage:
		status = f.ExitUsage
	}
	var e *exitError
	if errors.As(err, &e) && e.err == nil {
		err = nil
	}
	return &exitError{status, err}
}

// usageStatus is the exit status for a command line that cannot be read: what --exit-usage says, if that can be read.
func usageStatus(args []string) int {
	for i, a := range args {
		value, ok := strings.CutPrefix(a, "--exit-usage=")
		switch {
		case a == "--":
			return exitUsage
		case a == "--exit-usage" && i+1 < len(args):
			value, ok = args[i+1], true
		}
		if n, err := strconv.Atoi(value); ok && err == nil && n >= 0 && n <= 255 {
			return n
		}
	}
	return exitUsage
}

// words returns the command's words as they were given, which kong read as parsed. It makes sure that NAME stands before
// the -- and nothing but NAME: `run -- cp a b` would run a under the lock cp. After -- any bytes may stand; kong replaces
// what is not UTF-8. A NAME may stand between two, and one that begins with a dash has to: `run -- "$NAME" -- cp a b`. Without -- the command's own
// flags would be told from ours by where they stand, and a person may have meant either: `run job head -n 5 log`.
func (l *commandLine) words(command, name string, parsed []string) ([]string, error) {
	i := slices.Index(l.args, "--")
	own := l.args
	if i >= 0 {
		own = l.args[:i]
	}
	for _, a := range own {
		if !utf8.ValidString(a) {
			return nil, usage("%q is not UTF-8: want names and flags in UTF-8, and the command after --", a)
		}
	}
	if i < 0 {
		if slices.ContainsFunc(parsed, func(w string) bool { return len(w) > 1 && w[0] == '-' }) {
			// Its arguments are not repeated: they may be secret.
			return nil, usage("flags stand after the command's name: put -- before it, and they are the command's: interlock %s %s -- %s …", command, quoteWord(name), quoteWord(parsed[0]))
		}
		return parsed, nil
	}
	if len(parsed) > 0 && parsed[0] == "--" { // kong leaves the -- before what it reads no further
		parsed = parsed[1:]
	}
	switch words := l.args[i+1:]; {
	case len(parsed) == len(words):
		return words, nil
	case len(parsed) > len(words):
		return nil, usage("too many words before --: interlock %s NAME -- command arguments…", command)
	case len(words) > 2 && words[1] == "--" && strings.HasPrefix(words[2], "-") && !strings.HasPrefix(words[0], "-"):
		// The first -- is in the place of a NAME that was forgotten, and the second is the command's own: `run -- grep -- -x file`.
		return nil, usage("NAME is missing before --: interlock %s NAME -- command arguments…", command)
	case len(words) == 1 || words[1] == "--":
		if !utf8.ValidString(words[0]) {
			return nil, usage("%q is not UTF-8: want names in UTF-8", words[0])
		}
		return words[min(2, len(words)):], nil
	case strings.HasPrefix(words[0], "-"):
		return nil, usage("NAME is missing before --, or if it is %[2]s, -- after it: interlock %[1]s -- %[2]s -- command arguments…", command, quoteWord(words[0]))
	default:
		return nil, usage("NAME is missing before --: interlock %s NAME -- command arguments…", command)
	}
}

// locker waits for a lock.
type locker func(context.Context) (*interlock.Lease, error)

// connect opens the store and makes the lock, both for one command.
func (j *job) connect(ctx context.Context, lock func(*interlock.Client) (locker, error)) error {
	d, store, err := j.open(ctx)
	if err != nil {
		return err
	}
	if d.Traits().Fence == driver.NoFence {
		j.say("this store draws no tokens: INTERLOCK_FENCE is 0")
	}
	j.flags.settle(d.Traits())
	j.store, j.tap, j.renewed = store, &tap{Driver: d}, make(renewals, 1)
	if err := j.canRefuse(ctx); err != nil {
		return err
	}
	j.outside = j.tap
	o := &interlock.Options{Tracer: j.renewed, Logger: slog.New(slog.DiscardHandler)}
	if j.patience > opening.Patience { // who waits for long waits for a server, too
		o.Patience = j.patience
	}
	j.client, err = interlock.New(j.tap, o)
	if err != nil {
		return err
	}
	if j.lock, err = lock(j.client); err != nil {
		var e *interlock.Error
		if errors.As(err, &e) { // what was given is wrong, and the name only where it is said
			err = e.Err
		}
		return &exitError{exitUsage, err}
	}
	return j.deadlock(ctx, d)
}

// tryPatience is how long a store may take to answer somebody who does not wait for the lock, as it is for TryLock.
const tryPatience = 2 * time.Second

// leastPatience is how long it may take at least to answer somebody who waits for a moment: to open a store takes some round trips.
const leastPatience = time.Second

// patience is how long somebody who waits for the lock for d bears with a store that does not answer.
func patience(d time.Duration) time.Duration {
	if d == 0 {
		return tryPatience
	}
	return max(d, leastPatience)
}

// until returns the deadline for the command of a lease, as it is known now.
func (j *job) until(lease *interlock.Lease) guard.Deadline {
	// Now is read first: time that passes in between makes the deadline earlier, never later. Err asks whether the machine
	// was suspended, which Until does not.
	now := guard.Now()
	_ = lease.Err()
	end := now + int64(time.Until(lease.Until()))
	if j.latest != 0 {
		end = min(end, j.latest)
	}
	return guard.DeadlineAt(end, j.flags.grace())
}

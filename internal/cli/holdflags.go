package cli

import (
	"errors"
	"path/filepath"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
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

var errNoCommand = errors.New("a command is needed: interlock run NAME -- command arguments…")

// options returns the lock's options, for a command.
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

// setTTL sets the TTL that the lease has where none was chosen: that of a client without options.
func (f *holdFlags) setTTL(t driver.Traits) {
	if f.TTL != nil {
		return
	}
	ttl := max(15*time.Second, t.MinTTL)
	if t.MaxTTL > 0 {
		ttl = min(ttl, t.MaxTTL)
	}
	f.TTL = &ttl
}

// grace returns the grace of the lease, once the TTL is set.
func (f *holdFlags) grace() time.Duration {
	if f.Grace != nil {
		return *f.Grace
	}
	return min(max(*f.TTL/10, 2*time.Millisecond), *f.TTL/3)
}

// status replaces interlock's own exit statuses by those of --exit-held and its like.
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

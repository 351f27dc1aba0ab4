package driver

import (
	"context"
	"encoding"
	"fmt"
	"time"
)

// Examiner is a [Driver] that can say what about its store, as it is set up now, would hurt locks.
type Examiner interface {
	// Examine makes the checks of this store and returns what each has found: one finding for a check, or one for each of several
	// servers. It is asked beside all other calls, by people and by services that start; it is back within a few seconds, asks a server
	// little, and changes nothing but for what e.Write allows.
	//
	// A check that cannot be made, for want of a right or because the server does not tell, is a finding of LevelSkip that says why: there is
	// no check that passes unseen. An error says that the store does not answer; with it come the findings until then.
	Examine(ctx context.Context, e Exam) ([]Finding, error)
}

// Exam is how a store is examined.
type Exam struct {
	TTL   time.Duration // with which its locks are taken
	Grace time.Duration // of them: what takes longer, such as an answer, can cost a lock
	Write bool          // what is written and removed again may be: nothing that anybody else would notice
}

// Finding is what one check of a store has found, for people and programs. It holds no secret.
type Finding struct {
	// Code is the row of docs/failures.md that tells of what goes wrong, as "R3"; empty where there is none.
	Code string `json:"code,omitempty"`

	// Title names the check by a word or two, as "eviction". It is the same whatever was found, and no other check of the store has it.
	Title string `json:"title"`

	Level  Level  `json:"level"`
	Server string `json:"server,omitempty"` // which, where the store has several

	// Seen is what is there, with names and numbers as the server has them; of a check that was skipped, why.
	Seen string `json:"seen"`

	Why  string `json:"why,omitempty"`  // it matters for locks; of LevelWarn and LevelBad
	Mend string `json:"mend,omitempty"` // the command or the setting, and what to mind with it; likewise
}

// FindingError is why a store cannot be opened whose server has answered: with the finding by which [Examiner] would have told it, that of a
// standby for example. An [Opener] that knows how to mend it returns it, and errors.As finds it.
type FindingError struct {
	Finding Finding
	Err     error
}

// Error implements error.
func (e *FindingError) Error() string { return e.Err.Error() }

// Unwrap returns e.Err.
func (e *FindingError) Unwrap() error { return e.Err }

// Level says how much a finding hurts locks.
type Level uint8

// The levels, the worst last.
const (
	LevelOK   Level = iota // all is well
	LevelSkip              // the check could not be made
	LevelWarn              // one thing more, such as a restart, a failover or more load, and a lock is lost, or cannot be had
	LevelBad               // a promise of the store is broken: two may hold, or a holder loses its lock, or no lock can be had
)

var levels = [...]string{LevelOK: "ok", LevelSkip: "skip", LevelWarn: "warn", LevelBad: "bad"}

// String returns the level as programs read it.
func (l Level) String() string {
	if int(l) < len(levels) {
		return levels[l]
	}
	return "unknown"
}

var (
	_ encoding.TextMarshaler   = LevelOK
	_ encoding.TextUnmarshaler = new(Level)
)

// MarshalText implements encoding.TextMarshaler.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (l *Level) UnmarshalText(text []byte) error {
	for i, name := range levels {
		if name == string(text) {
			*l = Level(i) //nolint:gosec // four of them
			return nil
		}
	}
	return fmt.Errorf("driver: level %q: want ok, skip, warn or bad", text)
}

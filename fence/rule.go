package fence

import (
	"errors"
	"fmt"
)

// Max is the largest token a guard accepts, 2⁶³-1: what a signed 64-bit column can hold.
const Max uint64 = 1<<63 - 1

var (
	// ErrStale is matched by the error of a claim or write whose token is smaller than one the resource has already
	// seen: somebody took the lock later. Nothing was changed. Asking again with the same token never helps. The
	// error is a [*StaleError], which carries the highest token seen.
	ErrStale = errors.New("fence: stale token")

	// ErrNoToken is matched by the error of a claim or write with token 0: the lease of a reader or of a semaphore's
	// permit has no token, and neither has a name that the context holds no lock of.
	ErrNoToken = errors.New("fence: token 0 is no token: only a mutex, a write lock or a leadership has one")

	// ErrRange is matched by the error of a claim or write whose token is larger than [Max].
	ErrRange = errors.New("fence: token is larger than 2^63-1, so no lock gave it out")
)

// A StaleError is the refusal of a token that is smaller than one seen before. It matches [ErrStale].
type StaleError struct {
	Resource string // what refused, as the guard calls it; may be empty
	Token    uint64 // the token that was refused
	Highest  uint64 // the highest token seen, larger than Token
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("fence: token %d is stale: %s has seen %d from a later holder", e.Token, quoted(e.Resource), e.Highest)
}

// Is reports whether target is [ErrStale].
func (e *StaleError) Is(target error) bool { return target == ErrStale }

// Valid reports whether token can be one at all: its error matches [ErrNoToken] for 0 and [ErrRange] above [Max].
func Valid(token uint64) error {
	switch {
	case token == 0:
		return ErrNoToken
	case token > Max:
		return ErrRange
	}
	return nil
}

// Check is the rule of every guard: a token at least as large as the highest seen passes, a smaller one is
// [ErrStale], and an impossible one is refused by [Valid]. Equal passes because one holder writes many times.
// The resource is named in the error only.
//
// Check decides and stores nothing. Whoever calls it must look up the highest token, call Check, store the new highest
// and write in one atomic step; between two steps a later holder could come and go.
func Check(resource string, highest, token uint64) error {
	if err := Valid(token); err != nil {
		return err
	}
	if token < highest {
		return &StaleError{Resource: resource, Token: token, Highest: highest}
	}
	return nil
}

func quoted(resource string) string {
	if resource == "" {
		return "the resource"
	}
	return fmt.Sprintf("%q", resource)
}

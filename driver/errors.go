package driver

import (
	"errors"
	"fmt"
)

// The outcomes that a driver knows for certain. Any other error means that the outcome is unknown.
var (
	// ErrSessionLost: the session is over, and all its claims with it. Final.
	ErrSessionLost = errors.New("session lost")

	// ErrRefused: the store changed nothing, and asking again will not help: a name that cannot be kept, a kind that
	// does not go with the one that stands there, missing rights.
	ErrRefused = errors.New("refused by the store")

	// ErrName is ErrRefused, which it matches, where another name or another kind would do: this one cannot be kept, or it is
	// in use in a way that this claim does not go with.
	ErrName = fmt.Errorf("%w for this name", ErrRefused)

	// ErrOnlyNow is ErrRefused, which it matches, of [Inspector].Break without now: the claim cannot be marked, as one of another program,
	// whose owner reads no marks. With now it can be broken.
	ErrOnlyNow = fmt.Errorf("%w: this claim can be broken only at once", ErrRefused)

	// ErrNotSent: nothing was changed, and asking again may help. Nothing left this process, or the store has answered that
	// it does nothing for now, as while it loads its data or its master moves.
	ErrNotSent = errors.New("not sent")

	// ErrUnable: the store is there and says that it cannot do this, for a reason that people have to deal with: its disk
	// or its memory is full. Whoever asked is told at once. It stands beside ErrNotSent where nothing was changed.
	ErrUnable = errors.New("the store is unable")

	// ErrBadData: what stands in the store at the place of a lock is no lock of ours: another program's data, or damaged. It
	// stands beside ErrRefused where that is known to have kept a claim out.
	ErrBadData = errors.New("bad data")

	// ErrBroken: this claim was broken by an operator. Final for the claim, not for its session.
	ErrBroken = errors.New("broken by an operator")

	// ErrGone: this claim is no longer in line although nobody here released it. Final for the claim; its session may
	// live on.
	ErrGone = errors.New("claim gone from the store")
)

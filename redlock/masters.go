package redlock

import (
	"context"

	"github.com/interlock-go/interlock/driver"
)

// Master is one of the masters of a [Driver], as it stands now.
type Master = driver.Master

var _ driver.Quorum = (*Driver)(nil)

// Masters implements [driver.Quorum]: it asks all masters who they are, and gives each its vote
// that may have one. The error says why the set as a whole is of no use; with it come the masters
// all the same.
func (d *Driver) Masters(ctx context.Context) ([]Master, error) { return d.members.Masters(ctx) }

// GiveUp implements [driver.Quorum]: it says that these masters, by their index in [Masters], are
// gone for good. It is for an operator, where a majority has lost its memory and waits for masters
// that never come back: it waits for them no more. They must be exactly those that do not answer,
// and a majority of all must answer; otherwise the error matches [driver.ErrRefused] and nothing is
// changed.
//
// No lease is risked. What is lost is the order of tokens where only those masters knew the last
// one, with masters that have lost their memory, too: the next token is drawn from the clocks then.
// A master that was given up and comes back all the same takes a place of the set anew, as one that
// has lost its memory, and so does a new server under its address.
func (d *Driver) GiveUp(ctx context.Context, masters ...int) ([]Master, error) {
	return d.members.GiveUp(ctx, masters)
}

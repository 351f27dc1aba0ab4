// Package redlock keeps locks on several independent Redis masters: the Redlock algorithm, with fencing tokens in the order
// of leases and a line in place of a race.
package redlock

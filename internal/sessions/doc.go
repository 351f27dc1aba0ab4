// Package sessions is what the sessions of every store have in common, whatever the protocol: the
// calls for a claim are serialized and outlive their caller, a loss is reported at once, and a
// driver closes its sessions with itself.
package sessions

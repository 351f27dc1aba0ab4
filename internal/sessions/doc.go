// Package sessions is what the sessions of every store have in common, whatever is on the wire: the calls for a claim follow
// each other and outlive their caller, a loss is told at once, and a driver knows the sessions that it closes with itself.
//
// It was found in the stores over Redis and knows nothing of them.
package sessions

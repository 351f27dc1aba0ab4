// Package wire is a link that can fail: a TCP proxy in front of a server that stalls one way or both, delays, drops, cuts
// and counts. It knows no product; only Filter reads RESP, so that single frames can be taken out of a stream.
package wire

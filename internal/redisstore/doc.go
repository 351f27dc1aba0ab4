// Package redisstore is what the stores over Redis have in common beside their connections: how a
// call for a claim outlives its caller, what a server's configuration says about locks, and which
// keys beside a name belong to the store.
//
// What two stores merely do alike, such as the order of a line, is in their scripts and stays
// there.
package redisstore

// Package memcache has the meta commands of memcached that a lock needs: mg, ms, md and mn, which
// return the version of an item (its CAS) and take it as a condition.
//
// A [Client] has one connection to one server. The server carries out the requests of a connection
// in order, so that a request whose caller has given up is never carried out after a later one.
// Those of two connections it may carry out in any order. That is why there is no pool, and why a
// request whose caller has given up does not close the connection before its time is over.
package memcache

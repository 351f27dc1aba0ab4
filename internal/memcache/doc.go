// Package memcache speaks memcached's meta commands, as far as a lock needs them: mg, ms, md and mn, which answer the version of an
// item (its CAS) and take it as a condition.
//
// A [Client] has one connection to one server. The server carries out what comes over a connection in order, so a request that stands behind
// another one is never overtaken by it, also where the other one's caller has gone; what two connections bring it may carry out in any
// order. That is why there is no pool, and why a request whose caller has gone does not close the connection before its time is over.
package memcache

// Package redistest has what the tests of stores in Redis share: [Proxies] between a driver and its
// servers, a [Harness] for the conformance suite made of a description of the [Store], and a worker,
// another process that uses a lock. Only tests import it.
package redistest

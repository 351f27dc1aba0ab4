// Package flawed has the locks, of Redis but for four, that people write by hand, each with one
// well-known fault: what a test of locks must convict before its silence about others means
// anything.
//
// All of them are one honest lock, SET NX PX with a value of its own, released and extended by
// scripts that compare it, and each is wrong in exactly one place. Nothing else is simplified: they
// wait, renew and give back as a good lock does, under the same core. They have no line, no tokens
// and no place in a program that means it, so no scheme of theirs is registered with package
// driver: only [Open] knows them, and only package torture calls it.
//
// Over several masters that know nothing of each other there is one more, with a quorum, tokens,
// permits and a delay for masters that come back, but without a line: again one that is correct,
// called majority, and each of the others wrong in one place.
//
//	flawed+NAME://HOST:PORT                           one Redis
//	flawed+NAME://HOST:PORT,HOST:PORT,…?max_ttl=1s    several masters
//	flawed+promoted://HOST:PORT,HOST:PORT/MASTER      the Sentinels of a master with a replica
//	flawed+honest://HOST:PORT                         the lock without a flaw
//	flawed+majority://HOST:PORT,HOST:PORT,…           and that over several masters
//
// And there is the advisory lock of a PostgreSQL behind a pooler that shares connections:
//
//	flawed+pooled://USER@HOST:PORT/DATABASE
//
// and the lock of a memcached that takes its seconds at face value:
//
//	flawed+face-value://HOST:PORT
//
// In etcd there is one that looks for a key and not for its lease, and the same that does:
//
//	flawed+lapsed://HOST:PORT,HOST:PORT,…
//	flawed+leased://HOST:PORT,HOST:PORT,…
//
// In ZooKeeper there is one that makes a node again when the answer is lost, and the same that
// looks for it:
//
//	flawed+unprotected://HOST:PORT
//	flawed+protected://HOST:PORT
//
// A parameter skew=1s sets the clock of this process ahead, as far as the lock looks at it.
package flawed

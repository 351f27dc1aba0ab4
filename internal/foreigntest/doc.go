// Package foreigntest runs the lock clients of other projects, so that tests can hold a lock with one of them and ask
// for it with Interlock, and the other way round. What runs is the real library, not an imitation: redis-py by Python,
// redlock and redis-semaphore by Node.js, Curator by Java, redsync and redislock by a Go program in the module of the rivals, bench.
//
// Each client is a process of its own, with one lock, that is told what to do by lines:
//
//	the test writes     the client answers
//	                    READY                     it has reached the servers
//	lock MILLISECONDS   LOCKED KEY=VALUE          which it has written; 0 tries once
//	                    TIMEOUT                   somebody else held the lock all the time
//	unlock              UNLOCKED
//	extend MILLISECONDS EXTENDED                  the hold ends so long from now
//	                    ERR TEXT                  to any of them
//
// Redisson is the exception: what runs in its place is a program of this package that follows its layout.
//
// When its standard input ends, a client ends at once, without unlocking; so none outlives its test.
//
// A client that waits asks again every 20 ms, much sooner than the libraries do by themselves, to save the tests' time.
//
// Whatever is needed and missing is an error that says what to install: Node.js with npm, Python 3 with redis-py, Java with Curator. The
// packages of npm are fetched at first use, in the versions of the lock file, into the user's cache folder.
package foreigntest

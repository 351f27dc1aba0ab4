// Package redisconn is what the lock packages for Redis need of a Redis client, and no more.
//
// A [Conn] sends commands without ever repeating one by itself, sends many of them together, and
// subscribes to a channel on a connection of its own. A [Runner] runs scripts over it, and sends
// one once more, over a connection that has just answered, where its own had ended and its caller
// says that the step is idempotent: see [Call]. Programs that have a client already wrap it:
//
//	conn := redisconn.Rueidis(client) // a rueidis.Client
//	driver, err := redislock.New(ctx, conn, nil)
//
// or, with package redisconn/goredis, a redis.UniversalClient,
//
//	conn, err := goredis.Conn(client)
//
// and keep it: closing a Conn that was made of a client leaves the client open. Programs that have
// none name the server by URL and let [Open] make a client, which then has what a lock wants: one
// connection for commands, so that they keep their order, no retries, and a count of the
// connections made.
//
// What a server refuses arrives as an [*Error], whose code says what may be done about it: see
// [Classify].
package redisconn

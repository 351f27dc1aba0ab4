package foreigntest

// Kind names a lock client: a library, and which of its locks.
type Kind string

// The clients. All of them write the lock to one key, as SET with NX and PX does, and compare its value before they
// delete it.
const (
	RedisPy          Kind = "redis-py"                // Python, redis.lock.Lock
	Redlock4         Kind = "redlock4"                // npm redlock 4
	Redlock5         Kind = "redlock5"                // npm redlock 5
	SemaphoreMutex   Kind = "redis-semaphore"         // npm redis-semaphore, Mutex
	SemaphoreRedlock Kind = "redis-semaphore-redlock" // npm redis-semaphore, RedlockMutex
	Redsync          Kind = "redsync"                 // Go, github.com/go-redsync/redsync/v4
	Redislock        Kind = "redislock"               // Go, github.com/bsm/redislock
)

// The locks of Redisson, the client for Java, in its own layout. These are no real library but a program that writes and
// tells the same: no package of Debian has a Redisson. They are not among Kinds. A TTL below 0 is that of a watchdog, which
// renews it; on a Cluster one node is named. Names of RedissonMulti have commas between them.
const (
	RedissonLock   Kind = "redisson-lock"   // getLock
	RedissonFenced Kind = "redisson-fenced" // getFencedLock; the value ends with the token
	RedissonFair   Kind = "redisson-fair"   // getFairLock
	RedissonSpin   Kind = "redisson-spin"   // getSpinLock
	RedissonRead   Kind = "redisson-read"   // getReadWriteLock().readLock()
	RedissonWrite  Kind = "redisson-write"  // getReadWriteLock().writeLock()
	RedissonMulti  Kind = "redisson-multi"  // getMultiLock
)

// The locks of Apache Curator, in Java, over ZooKeeper. They are not among Kinds. Their TTL is the timeout of a session, which is kept alive, and their key the
// path of a node. Each Lock of CuratorSemaphore takes one more of two leases, and an Unlock returns the last.
const (
	CuratorMutex          Kind = "curator-mutex"           // InterProcessMutex
	CuratorRead           Kind = "curator-read"            // InterProcessReadWriteLock.readLock
	CuratorWrite          Kind = "curator-write"           // InterProcessReadWriteLock.writeLock
	CuratorSemaphore      Kind = "curator-semaphore"       // InterProcessSemaphoreV2
	CuratorSemaphoreMutex Kind = "curator-semaphore-mutex" // InterProcessSemaphoreMutex
)

// The locks of kazoo, in Python, over ZooKeeper, as those of Curator.
const (
	KazooLock  Kind = "kazoo-lock"  // Lock
	KazooRead  Kind = "kazoo-read"  // ReadLock
	KazooWrite Kind = "kazoo-write" // WriteLock
)

// GoZooKeeper is the lock of go-zookeeper, in Go, in the layout of Curator's mutex.
const GoZooKeeper Kind = "go-zookeeper"

// traits is what tests have to know of a client.
type traits struct {
	prefix string // before the name, in the key
	many   bool   // takes the lock on a majority of several servers
	renews bool   // renews by itself what it holds
}

var known = map[Kind]traits{
	RedisPy:          {},
	Redlock4:         {many: true},
	Redlock5:         {many: true},
	SemaphoreMutex:   {prefix: "mutex:", renews: true},
	SemaphoreRedlock: {prefix: "mutex:", renews: true, many: true},
	Redsync:          {many: true},
	Redislock:        {},

	CuratorMutex:          {prefix: "/", renews: true},
	CuratorRead:           {prefix: "/", renews: true},
	CuratorWrite:          {prefix: "/", renews: true},
	CuratorSemaphore:      {prefix: "/", renews: true},
	CuratorSemaphoreMutex: {prefix: "/", renews: true},
	GoZooKeeper:           {prefix: "/", renews: true},
	KazooLock:             {prefix: "/", renews: true},
	KazooRead:             {prefix: "/", renews: true},
	KazooWrite:            {prefix: "/", renews: true},
}

// Kinds returns all clients, in an order that stays.
func Kinds() []Kind {
	return []Kind{RedisPy, Redlock4, Redlock5, SemaphoreMutex, SemaphoreRedlock, Redsync, Redislock}
}

// Key returns the key to which the client writes the lock of that name. A lock of Interlock that has the key as its
// name is the same lock.
func (k Kind) Key(name string) string { return known[k].prefix + name }

// Many reports whether the client can take a lock on a majority of several servers.
func (k Kind) Many() bool { return known[k].many }

// Renews reports whether the client renews by itself what it holds, so that a hold ends only when it is released or
// when the process is killed or stopped.
func (k Kind) Renews() bool { return known[k].renews }

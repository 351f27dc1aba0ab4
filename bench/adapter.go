package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// An adapter is one way to lock. Worker processes find it by name, and each
// opens it once.
type adapter struct {
	// open connects one process; all its goroutines share the locker.
	open func(ctx context.Context, p place) (locker, error)
	// files, where set, makes what worker i of n inherits as descriptor 3.
	files func(n int) ([]*os.File, error)
	// redis asks for as many servers, at place.Redis.
	redis int
	// postgres asks for a server, at place.Postgres.
	postgres bool
	// etcd asks for one, at place.Etcd.
	etcd bool
	// mariadb asks for a server, at place.MariaDB.
	mariadb bool
	// memcached asks for a server, at place.Memcached.
	memcached bool
	// zookeeper asks for a server, at place.ZooKeeper.
	zookeeper bool
	// key is where the store keeps the lock of a name; nil = at the name.
	key func(name string) any
	// ends is how to ask PostgreSQL when the lease of a key ends, in seconds
	// since 1970.
	ends string
}

func (a adapter) keyOf(name string) any {
	if a.key == nil {
		return name
	}
	return a.key(name)
}

// place is where a worker stands in a run.
type place struct {
	Dir       string        // empty at the start of the run, shared by its workers
	Redis     []string      // host:port of the run's own servers
	Postgres  string        // URL of the run's own server
	Etcd      string        // host:port of the run's own server
	MariaDB   string        // the same
	Memcached string        // host:port of the run's own server
	ZooKeeper string        // the same
	Process   int           // from 1
	Processes int           // that take part
	TTL       time.Duration // 0 = the default of what is measured
	fd        *os.File      // from adapter.files
}

// A locker is one process's connection. Its methods and those of its mutexes
// may be called from any number of goroutines.
type locker interface {
	// mutex is the lock of that name. Users make it once, so it is not timed.
	mutex(name string) mutex
	close() error
}

type mutex interface {
	// lock waits for the lock. It returns errOver when nobody will hand over
	// any more.
	lock(ctx context.Context) (unlock func() error, err error)
}

// tokened is a mutex whose leases have fencing tokens, which must not go back.
type tokened interface {
	lockToken(ctx context.Context) (token uint64, unlock func() error, err error)
}

// A meter is a locker that knows what it asked of its store.
type meter interface {
	// calls counts operations on locks; renewals, which keep what is there,
	// apart.
	calls() (operations, renewals int64)
}

// A wired locker knows how many requests it has sent.
type wired interface{ requests() int64 }

// requestsOf is how many requests a locker has sent; 0 = not known.
func requestsOf(l locker) int64 {
	if w, ok := l.(wired); ok {
		return w.requests()
	}
	return 0
}

// A grantor is a locker that knows how its store came to its grants.
type grantor interface {
	// grants counts them, and those for which a token had to be raised first.
	grants() (all, raised uint64)
}

var errOver = errors.New("bench: the other side has ended the run")

// adapters is filled by the files of the contenders.
var adapters = map[string]adapter{
	"fifo":               {open: openFIFO},
	"fifo with contexts": {open: openFIFOWithContexts},
	"flock":              {open: openFlock},
	"sqlite":             {open: openSQLite},
	"stream":             {open: openPingPong, files: streamPairs},
	"datagram":           {open: openPingPong, files: datagramPairs},
	"eof":                {open: openEOF, files: streamPairs},
	"file keepers":       {open: openFileKeepers},
	"memory keepers":     {open: openMemKeepers},
	"memlock":            {open: openMemlock},
	"filelock":           {open: openFilelock},
	"filelock traced":    {open: openFilelockTraced},
	"redis":              {open: openRedis, redis: 1},
	"redis strict":       {open: openRedisStrict, redis: 1},
	"redis isolated":     {open: openRedisIsolated, redis: 1},
	"redis metered":      {open: openRedisMetered, redis: 1},
	"raw":                {open: openRawRedis, redis: 1},
	"push":               {open: openRedisPush, redis: 1},
	"redsync":            {open: openRedsync, redis: 1},
	"redsync rueidis":    {open: openRedsyncRueidis, redis: 1},
	"redislock":          {open: openRedislock, redis: 1},
	"rueidislock":        {open: openRueidislock, redis: 1, key: rueidislockKey},
	"raw keepers":        {open: openRawKeepers, redis: 1},
	"redislock keepers":  {open: openRedislockKeepers, redis: 1},
	"redlock":            {open: openRedlock, redis: masters},
	"redlock strict":     {open: openRedlockStrict, redis: masters},
	"redlock ahead":      {open: openRedlockAhead, redis: masters},
	"redlock behind":     {open: openRedlockBehind, redis: masters},
	"raw quorum":         {open: openRawQuorum, redis: masters},
	"redsync quorum":     {open: openRedsync, redis: masters},

	"redsync rueidis quorum": {open: openRedsyncRueidis, redis: masters},

	"rawadd":    {open: openRawMemcached, memcached: true},
	"memcached": {open: openMemcached, memcached: true},

	"raw rows":             {open: openRawPostgres, postgres: true},
	"raw rows, unprepared": {open: openRawPooled, postgres: true},
	"pg push":              {open: openPGPush, postgres: true},
	"advisory":             {open: openAdvisory, postgres: true},
	"table":                {open: openTable, postgres: true, ends: tableEnds},
	"table, eager":         {open: openEagerTable, postgres: true, ends: tableEnds},
	"table keepers":        {open: openTableKeepers, postgres: true},
	"goose":                {open: openGoose, postgres: true, key: func(name string) any { return gooseKey(name) }, ends: gooseEnds},
	"pg rows":              {open: openPGRows, postgres: true, ends: pgEnds},
	"pg rows strict":       {open: openPGRowsStrict, postgres: true},
	"pg session":           {open: openPGSession, postgres: true},
	"pg session strict":    {open: openPGSessionStrict, postgres: true},

	"raw zk":       {open: openRawZooKeeper, zookeeper: true},
	"go-zookeeper": {open: openGoZooKeeper, zookeeper: true},
	"curator":      {open: openCurator, zookeeper: true},
	"zk":           {open: openZooKeeper, zookeeper: true, key: zkKey},
	"zk strict":    {open: openZooKeeperStrict, zookeeper: true},

	"raw etcd":                 {open: openRawEtcd, etcd: true},
	"concurrency":              {open: openConcurrency, etcd: true},
	"etcd":                     {open: openEtcd, etcd: true},
	"etcd strict":              {open: openEtcdStrict, etcd: true},
	"bare rows":                {open: openBareMaria, mariadb: true},
	"get lock":                 {open: openGetLock, mariadb: true},
	"my rows":                  {open: openMyRows, mariadb: true},
	"my rows strict":           {open: openMyRowsStrict, mariadb: true},
	"my session":               {open: openMySession, mariadb: true},
	"my session strict":        {open: openMySessionStrict, mariadb: true},
	"bare shed pg":             {open: openBareShedPostgres, postgres: true},
	"shed pg":                  {open: openOursShedPostgres, postgres: true},
	"bare shed pg, unprepared": {open: openBareShedPooled, postgres: true},
	"bare shed my":             {open: openBareShedMariaDB, mariadb: true},
	"shed my":                  {open: openOursShedMariaDB, mariadb: true},
}

func findAdapter(name string) (adapter, error) {
	a, ok := adapters[name]
	if !ok {
		return adapter{}, fmt.Errorf("bench: no adapter %q", name)
	}
	return a, nil
}

// Package all imports every store, so that a program which takes a store's URL from its user knows all schemes. A
// program that knows its store imports that one alone.
package all

import (
	_ "github.com/interlock-go/interlock/etcdlock"      // etcd:
	_ "github.com/interlock-go/interlock/filelock"      // file:
	_ "github.com/interlock-go/interlock/memcachedlock" // memcached:
	_ "github.com/interlock-go/interlock/memlock"       // mem:
	_ "github.com/interlock-go/interlock/mysqllock"     // mysql:
	_ "github.com/interlock-go/interlock/pglock"        // postgres:
	_ "github.com/interlock-go/interlock/redislock"     // redis: and its kin
	_ "github.com/interlock-go/interlock/redissonlock"  // redisson: and its kin
	_ "github.com/interlock-go/interlock/redlock"       // redlock:
	_ "github.com/interlock-go/interlock/shedlock"      // shedlock+postgres: and shedlock+mysql:
	_ "github.com/interlock-go/interlock/zklock"        // zk:
)

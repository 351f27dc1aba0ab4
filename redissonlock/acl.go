package redissonlock

import (
	"slices"
	"strings"

	"github.com/interlock-go/interlock/internal/redisstore"
)

// The commands of a user who locks. A script runs with the rights of its caller, so they include
// the commands in scripts.
var (
	commands = []string{
		"eval", "evalsha", "ping", "select", "info", "scan", "time", "type", "exists", "get", "set", "del", "incrby", "pexpire", "pttl",
		"hget", "hmget", "hgetall", "hkeys", "hlen", "hexists", "hset", "hdel", "zcount", "zscore", "lrange",
		"subscribe", "unsubscribe", "publish",
	}
	onCluster = []string{"ssubscribe", "sunsubscribe", "spublish", "pubsub|shardnumsub", "cluster|slots"}
)

// ACL returns the rights of a user who locks names that match these patterns of Redis, and can do
// nothing else, as ACL SETUSER and ACL files of Redis 7 take them:
//
//	"ACL SETUSER locker on >password " + redissonlock.ACL("orders/*", "jobs/*")
//
// The user can list the names of all keys, and can read what INFO tells. It cannot ask for the
// server's configuration, so that New says that it is not known whether a machine that crashes
// forgets locks and tokens.
func ACL(names ...string) string {
	words := []string{"resetkeys", "resetchannels", "-@all"}
	for _, command := range slices.Concat(commands, onCluster) {
		words = append(words, "+"+command)
	}
	if slices.Contains(names, "*") { // all keys: Redis takes no further pattern then
		words, names = append(words, "~*"), nil
	}
	for _, name := range names {
		name = redisstore.Pattern(name)
		words = append(words, "~"+name, "~"+redisstore.SideKeys+"*}:redisson:"+name)
		for _, braced := range []string{"{" + name + "}", name} {
			words = append(words, "~redisson_lock_*:"+braced, "~"+braced+":*:rwlock_timeout:*")
		}
	}
	return strings.Join(append(words, "&redisson_lock__channel:*", "&redisson_rwlock:*"), " ")
}

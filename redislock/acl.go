package redislock

import (
	"slices"
	"strings"

	"github.com/interlock-go/interlock/internal/redisstore"
)

// The commands of a user who locks. A script runs with the rights of its caller, so they include
// the commands in scripts.
var (
	commands = []string{
		"time", "info", "subscribe", "scan", "ping", "select",
		"set", "get", "getrange", "setrange", "del", "exists", "type", "pexpire", "pttl", "incr", "incrby", "decr",
		"hget", "hmget", "hset", "hdel", "hlen", "rpush", "lindex", "llen", "lrange", "lrem", "publish", "pubsub|numsub",
	}
	scripting = []string{"eval", "evalsha"}
	calling   = []string{"fcall"}
)

// needed returns the commands for these options.
func needed(o Options) []string {
	if o.Functions {
		return slices.Concat(calling, commands)
	}
	return slices.Concat(scripting, commands)
}

// ACL returns the rights of a user who locks names that match these patterns of Redis, and can do
// nothing else, as ACL SETUSER and ACL files take them:
//
//	"ACL SETUSER locker on >password " + redislock.ACL(redislock.Options{}, "orders/*", "jobs/*")
//
// With o.Functions the user may call the functions of [Library], which another user has loaded,
// and can run no script of its own.
//
// On a Cluster the user needs cluster|slots besides.
//
// The user can list the names of all keys, and can read what INFO tells. It cannot ask for the
// server's configuration, so that nobody learns whether an append-only file is synced with every
// write: New then says that it is not known.
func ACL(o Options, names ...string) string {
	words := []string{"resetkeys", "resetchannels", "-@all"}
	for _, command := range needed(o) {
		words = append(words, "+"+command)
	}
	if slices.Contains(names, "*") { // all keys: Redis takes no further pattern then
		words, names = append(words, "~*"), nil
	}
	for _, name := range names {
		name = redisstore.Pattern(name)
		words = append(words, "~"+name)
		for _, side := range []string{"fence", "line", "claims"} {
			words = append(words, "~"+redisstore.SideKeys+"*}:"+side+":"+name)
		}
	}
	return strings.Join(append(words, "&"+channels+"*"), " ")
}

package redlock

import (
	"slices"
	"strings"

	"github.com/interlock-go/interlock/internal/redisstore"
)

// The commands of a user who locks. A script runs with the rights of whoever calls it, so that the
// commands in it count, too.
var commands = []string{
	"eval", "evalsha", "ping", "select", "info", "subscribe", "scan", "time", "type", "exists",
	"get", "mget", "getrange", "set", "setrange", "del", "pexpire", "pttl", "publish",
	"hget", "hmget", "hset", "hdel", "zadd", "zcard", "zrange", "zrem",
}

// asksWhoHears is done without where it is missing: who waits behind the dead waits for renewals
// then. So a master that does not know it is not refused.
const asksWhoHears = "pubsub|numsub"

// ACL returns the rights that a user who locks names that match these patterns of Redis needs on
// every master, and no more, as ACL SETUSER and ACL files take them:
//
//	"ACL SETUSER locker on >password " + redlock.ACL("orders/*", "jobs/*")
//
// The user can list the names of all keys, can read what INFO tells, and can change what the
// masters keep of their set. It cannot ask for the servers' configuration, which has passwords in
// it, so that nobody learns whether a master keeps everything, and each that restarts waits for its
// vote: where they do keep everything add "+config|get".
func ACL(names ...string) string {
	words := []string{"resetkeys", "resetchannels", "-@all"}
	for _, command := range append(slices.Clone(commands), asksWhoHears) {
		words = append(words, "+"+command)
	}
	if slices.Contains(names, "*") { // all keys: Redis takes no further pattern then
		words, names = append(words, "~*"), nil
	} else {
		words = append(words, "~"+redisstore.SideKeys+"redlock}:*")
	}
	for _, name := range names {
		words = append(words, "~"+name)
		for _, side := range []string{"qfence", "qline", "qclaims"} {
			words = append(words, "~"+redisstore.SideKeys+"*}:"+side+":"+name)
		}
	}
	return strings.Join(append(words, "&"+channels+"*"), " ")
}

package redisstore

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/interlock-go/interlock/driver"
)

// arguments are those with which a server is asked whether a user may call a command: with a key
// that does not exist (K) and a channel (C). The server checks rights only, and executes nothing.
var arguments = map[string]string{
	"time": "", "info": "", "ping": "", "select": "0", "scan": "0", "eval": "return 0", "evalsha": "0123456789abcdef0123456789abcdef01234567 0",
	"fcall": "f 0", "subscribe": "C", "ssubscribe": "C", "publish": "C m", "spublish": "C m", "pubsub|numsub": "C", "pubsub|shardnumsub": "C",
	"set": "K v", "get": "K", "mget": "K", "getrange": "K 0 0", "setrange": "K 0 v", "del": "K", "exists": "K", "type": "K", "pexpire": "K 1", "persist": "K", "pttl": "K",
	"incr": "K", "incrby": "K 1", "decr": "K", "hget": "K f", "hmget": "K f", "hset": "K f v", "hdel": "K f", "hlen": "K", "hexists": "K f", "hgetall": "K",
	"hincrby": "K f 1", "hkeys": "K", "rpush": "K v", "lindex": "K 0", "llen": "K", "lrange": "K 0 0", "lrem": "K 0 v", "lpop": "K", "rpop": "K",
	"zadd": "K 1 m", "zrem": "K m", "zscore": "K m", "zrange": "K 0 0", "zcard": "K", "zrank": "K m", "zcount": "K 0 0",
}

// rights checks whether this user may call what a lock needs. Which names it may lock is known only
// to those who use it.
func (x *examination) rights(ctx context.Context) error {
	const title = "rights"
	v, err := read(ctx, x.do, "ACL", "WHOAMI")
	if unavailable(err) {
		x.skip("", title, "this user may not ask for its rights (ACL WHOAMI): a lock that is taken, by --write, tries them")
		return nil
	}
	if err != nil {
		return err
	}
	user, _ := v.(string)
	var commands []string
	for _, command := range x.Needs {
		if _, known := arguments[command]; known {
			commands = append(commands, command)
		}
	}
	answers := make([]dryRun, len(commands))
	var all sync.WaitGroup
	for i, command := range commands {
		if i == 0 { // which shows whether the others are to be asked
			if answers[0] = x.dryRun(ctx, user, command); unavailable(answers[0].err) {
				x.skip("", title, "this user may not ask for its rights (ACL DRYRUN): a lock that is taken, by --write, tries them")
				return nil
			}
			continue
		}
		all.Go(func() { answers[i] = x.dryRun(ctx, user, command) }) // at once, since each by itself takes a round trip
	}
	all.Wait()
	var denied []string
	for i, a := range answers {
		switch {
		case unavailable(a.err): // another number of arguments in this version
		case a.err != nil:
			return a.err
		case x.Common && strings.Contains(a.text, "channel"), strings.Contains(a.text, "to run"):
			denied = append(denied, commands[i])
		}
	}
	f := driver.Finding{Title: title, Seen: fmt.Sprintf("the user %s may call what a lock needs", user)}
	if len(denied) > 0 {
		f.Level = driver.LevelBad
		f.Seen = fmt.Sprintf("the user %s may not call %s", user, strings.ToUpper(strings.Join(denied, ", ")))
		f.Why = "no lock can be had, given back, or handed to who waits"
		f.Mend = fmt.Sprintf("ACL SETUSER %s with the rights that ACL of the lock's package returns", user)
	}
	x.add(f)
	return nil
}

// dryRun is the answer to ACL DRYRUN.
type dryRun struct {
	text string
	err  error
}

func (x *examination) dryRun(ctx context.Context, user, command string) (a dryRun) {
	ask := append([]string{"ACL", "DRYRUN", user}, strings.Split(command, "|")...)
	if words := arguments[command]; command == "eval" {
		ask = append(ask, words, "0")
	} else {
		for _, w := range strings.Fields(words) {
			switch w {
			case "K":
				w = x.Key
			case "C":
				w = x.Channel
			}
			ask = append(ask, w)
		}
	}
	v, err := read(ctx, x.do, ask...)
	a.text, _ = v.(string)
	a.err = err
	return a
}

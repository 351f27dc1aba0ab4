// Peerlock is another library's lock, driven by lines: tests start it to see
// that Interlock and that library keep each other out.
//
//	peerlock KIND ADDR NAME [TTL]
//
// KIND is redsync, redislock or rueidislock, ADDR a Redis server as
// host:port, for redsync also several with commas between them, of which it
// takes a majority, TTL in milliseconds, 10,000 if left out. KIND go-zookeeper
// takes the members of an ensemble of ZooKeeper, and NAME is a path without
// its first slash. The Redis key is
// exactly NAME; for rueidislock, whose keys are PREFIX:0:NAME, it is so if
// NAME has ":0:" in it, and rueidislock:0:NAME otherwise.
//
// It prints READY, and then a line for each line that it reads:
//
//	lock MS     LOCKED KEY[=VALUE] or TIMEOUT; MS < 0 waits for ever, 0 tries once
//	unlock      UNLOCKED
//	extend MS   EXTENDED; the lock lasts for MS from now on
//	quit        nothing: it releases what it holds and ends
//
// ERR and a text stand for whatever else happened. The end of its input
// without quit is its death: it ends at once, whatever it does, and releases
// nothing.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

const defaultTTL = 10 * time.Second

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "peerlock:", err)
		os.Exit(2)
	}
}

func run(args []string) error {
	if len(args) < 3 || len(args) > 4 {
		return errors.New("usage: peerlock redsync|redislock|rueidislock|go-zookeeper HOST:PORT[,HOST:PORT…] NAME [TTL in ms]")
	}
	ttl := defaultTTL
	if len(args) == 4 {
		ms, err := strconv.Atoi(args[3])
		if err != nil || ms <= 0 {
			return fmt.Errorf("TTL %q: want milliseconds", args[3])
		}
		ttl = time.Duration(ms) * time.Millisecond
	}
	open, ok := kinds[args[0]]
	if !ok {
		return fmt.Errorf("kind %q: want redsync, redislock, rueidislock or go-zookeeper", args[0])
	}
	if strings.Contains(args[1], ",") && args[0] != "redsync" && args[0] != goZooKeeper {
		return fmt.Errorf("servers %q: %s takes one, redsync and go-zookeeper several", args[1], args[0])
	}
	ctx := context.Background()
	l, err := open(ctx, args[1], args[2], ttl)
	if err != nil {
		return err
	}
	say := func(text string) {
		if _, err := fmt.Println(strings.ReplaceAll(text, "\n", " ")); err != nil {
			os.Exit(1) // nobody listens
		}
	}
	say("READY")
	for line := range lines(os.Stdin) {
		if line == "quit" {
			break
		}
		say(obey(ctx, l, line))
	}
	l.close(ctx)
	return nil
}

// lines yields what is read from r. The end of r ends the process, even while
// a line is being worked on.
func lines(r io.Reader) <-chan string {
	out := make(chan string)
	go func() {
		s := bufio.NewScanner(r)
		for s.Scan() {
			out <- strings.TrimSpace(s.Text())
		}
		os.Exit(0)
	}()
	return out
}

// obey does what one line says and returns the answer.
func obey(ctx context.Context, l locker, line string) string {
	word, rest, _ := strings.Cut(line, " ")
	var ms int
	if word == "lock" || word == "extend" {
		var err error
		if ms, err = strconv.Atoi(rest); err != nil {
			return fmt.Sprintf("ERR %s wants milliseconds, not %q", word, rest)
		}
	}
	answer := ""
	var err error
	switch word {
	case "lock":
		var detail string
		if detail, err = l.lock(ctx, time.Duration(ms)*time.Millisecond); err == nil {
			answer = "LOCKED " + detail
		}
	case "unlock":
		answer, err = "UNLOCKED", l.unlock(ctx)
	case "extend":
		answer, err = "EXTENDED", l.extend(ctx, time.Duration(ms)*time.Millisecond)
	default:
		err = fmt.Errorf("%q: want lock, unlock, extend or quit", word)
	}
	switch {
	case errors.Is(err, errTimeout):
		return "TIMEOUT"
	case err != nil:
		return "ERR " + err.Error()
	}
	return answer
}

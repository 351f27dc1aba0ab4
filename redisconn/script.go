package redisconn

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"
)

// Script is a Lua script that runs on the server as one step.
type Script struct {
	Name string // under which a function library has it
	Text string
	sha  string
}

// NewScript makes a script of its text.
func NewScript(name, text string) *Script {
	sum := sha1.Sum([]byte(text))
	return &Script{Name: name, Text: text, sha: hex.EncodeToString(sum[:])}
}

// Call is one run of a script.
type Call struct {
	Script *Script
	Keys   []string // of one slot
	Args   []string
	Behind bool // see Command
}

func (c Call) command(how, what string) Command {
	words := make([]string, 0, 3+len(c.Keys)+len(c.Args))
	words = append(words, how, what, strconv.Itoa(len(c.Keys)))
	words = append(words, c.Keys...)
	return Command{Words: append(words, c.Args...), First: 3, Keys: len(c.Keys), Behind: c.Behind}
}

// Runner runs scripts over a Conn: by their digest, and by their text where the server does not know them, after a
// restart, a failover or SCRIPT FLUSH. With Functions it calls the functions of a library that an administrator has
// loaded, and needs no right to run scripts.
type Runner struct {
	Conn      Conn
	Functions bool
}

func (r Runner) first(c Call) Command {
	if r.Functions {
		return c.command("FCALL", c.Script.Name)
	}
	return c.command("EVALSHA", c.Script.sha)
}

// Run runs one script. NOSCRIPT says that nothing was done, so that the text can follow. So does TRYAGAIN, from a cluster
// that is moving the slot and has some of the script's keys here and some there: it is asked again until ctx ends.
func (r Runner) Run(ctx context.Context, c Call) (any, error) {
	moved := false // it was, when last asked
	for pause := moving; ; pause = min(2*pause, 16*moving) {
		v, err := r.Conn.Do(ctx, r.first(c))
		if err != nil && Is(err, "NOSCRIPT") {
			v, err = r.Conn.Do(ctx, c.command("EVAL", c.Script.Text))
		}
		again := err != nil && Is(err, "TRYAGAIN")
		if moved && err != nil && !again { // ctx has ended, as a rule, and says nothing of why
			return v, fmt.Errorf("%w; %s", Classify(err), codes["TRYAGAIN"].means)
		}
		if moved = again; !again || !sleep(ctx, pause) {
			return v, Classify(err)
		}
	}
}

// moving is the shortest pause before a slot that is being moved is tried again.
const moving = 2 * time.Millisecond

// sleep returns true after the pause, or false at once when ctx has ended or will have by then.
func sleep(ctx context.Context, pause time.Duration) bool {
	if at, ends := ctx.Deadline(); ends && time.Until(at) <= pause {
		return false
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// RunAll runs several scripts together. Where there are several masters, each has its own time: one that does not answer
// holds up none of the others.
func (r Runner) RunAll(ctx context.Context, calls []Call) []Reply {
	if len(calls) < 2 || r.Conn.Node(calls[0].Keys[0]) == "" {
		return r.batch(ctx, calls)
	}
	masters := map[string][]int{}
	for i, c := range calls {
		node := r.Conn.Node(c.Keys[0])
		masters[node] = append(masters[node], i)
	}
	type answer struct {
		at      []int
		replies []Reply
	}
	answers := make(chan answer, len(masters))
	for _, at := range masters {
		some := make([]Call, len(at))
		for j, i := range at {
			some[j] = calls[i]
		}
		go func() { answers <- answer{at, r.batch(ctx, some)} }()
	}
	var late <-chan time.Time // a client that connects may not look at the deadline
	if at, ends := ctx.Deadline(); ends {
		timer := time.NewTimer(time.Until(at) + grace)
		defer timer.Stop()
		late = timer.C
	}
	replies := make([]Reply, len(calls))
	for i := range replies {
		replies[i].Err = Classify(context.DeadlineExceeded)
	}
	for range masters {
		select {
		case a := <-answers:
			for j, reply := range a.replies {
				replies[a.at[j]] = reply
			}
		case <-late:
			return replies
		}
	}
	return replies
}

// grace is how much later than its deadline a client may say so itself, with a better reason.
const grace = 10 * time.Millisecond

// batch runs scripts at one master; those that it did not know follow together once more.
func (r Runner) batch(ctx context.Context, calls []Call) []Reply {
	cmds := make([]Command, len(calls))
	for i, c := range calls {
		cmds[i] = r.first(c)
	}
	replies := r.Conn.DoAll(ctx, cmds)
	var again []int
	for i := range replies {
		if replies[i].Err != nil && Is(replies[i].Err, "NOSCRIPT") {
			cmds[len(again)] = calls[i].command("EVAL", calls[i].Script.Text)
			again = append(again, i)
		}
	}
	if len(again) > 0 {
		for j, reply := range r.Conn.DoAll(ctx, cmds[:len(again)]) {
			replies[again[j]] = reply
		}
	}
	for i := range replies {
		replies[i].Err = Classify(replies[i].Err)
	}
	return replies
}

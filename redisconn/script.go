package redisconn

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Script is a Lua script that runs on the server as one step.
type Script struct {
	Name string // under which a function library has it
	Text string

	once sync.Once
	sha  string // made by digest
}

// NewScript makes a script of its text.
func NewScript(name, text string) *Script { return &Script{Name: name, Text: text} }

// digest is what the server calls the script. It is made when it is first asked for, since programs
// have scripts of stores that they do not use.
func (s *Script) digest() string {
	s.once.Do(func() {
		sum := sha1.Sum([]byte(s.Text))
		s.sha = hex.EncodeToString(sum[:])
	})
	return s.sha
}

// Call is one run of a script.
type Call struct {
	Script *Script
	Keys   []string // of one slot
	Args   []string
	Behind bool // see Command

	// Again is called when the connection ended before the answer, and returns whether to send the
	// call a second time, over one that has just answered. The first may have been executed, or
	// still be in a buffer on its way, so only an idempotent call is sent again. Nil: never. It is
	// called at most once, before Run or RunAll return.
	Again func() bool
}

// Idempotent is the Again of a call whose repeat changes nothing and whose late arrival does no
// harm.
func Idempotent() bool { return true }

func (c Call) command(how, what string) Command {
	words := make([]string, 0, 3+len(c.Keys)+len(c.Args))
	words = append(words, how, what, strconv.Itoa(len(c.Keys)))
	words = append(words, c.Keys...)
	return Command{Words: append(words, c.Args...), First: 3, Keys: len(c.Keys), Behind: c.Behind}
}

// Runner runs scripts over a Conn: by their digest, and by their text where the server does not
// know them, after a restart, a failover or SCRIPT FLUSH. With Functions it calls the functions of
// a library that an administrator has loaded, and needs no right to run scripts.
type Runner struct {
	Conn      Conn
	Functions bool
}

func (r Runner) first(c Call) Command {
	if r.Functions {
		return c.command("FCALL", c.Script.Name)
	}
	return c.command("EVALSHA", c.Script.digest())
}

// Run runs one script. NOSCRIPT says that nothing was done, so that the text can follow. So does
// TRYAGAIN, from a cluster that is moving the slot and has some of the script's keys here and some
// there: it is asked again until ctx ends.
func (r Runner) Run(ctx context.Context, c Call) (any, error) {
	moved := false // it was, when last asked
	for pause := moving; ; pause = min(2*pause, 16*moving) {
		v, err := r.send(ctx, c, false)
		if err != nil && c.again(ctx, err) {
			c.Again = nil
			var e error
			if v, e = r.send(ctx, c, true); e != nil {
				return nil, twice(err, e)
			}
			err = nil
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

// send sends one script.
func (r Runner) send(ctx context.Context, c Call, fresh bool) (any, error) {
	cmd := r.first(c)
	cmd.Fresh = fresh
	v, err := r.Conn.Do(ctx, cmd)
	if err != nil && Is(err, "NOSCRIPT") {
		cmd = c.command("EVAL", c.Script.Text)
		cmd.Fresh = fresh
		v, err = r.Conn.Do(ctx, cmd)
	}
	return v, err
}

// again reports whether c, which failed, is to be sent once more.
func (c Call) again(ctx context.Context, err error) bool {
	if c.Again == nil || !Broken(err) || ctx.Err() != nil {
		return false
	}
	at, ends := ctx.Deadline()
	return (!ends || time.Now().Before(at)) && c.Again()
}

// twice is the error of a call that failed as well when it was sent once more. What the second says
// of itself it does not say of the first, which may have been carried out.
func twice(first, second error) error {
	second = Classify(second)
	if errors.Is(second, driver.ErrNotSent) || errors.Is(second, driver.ErrRefused) {
		return fmt.Errorf("%w; once more: %s", first, second.Error())
	}
	return fmt.Errorf("%w; once more: %w", first, second)
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

// RunAll runs several scripts together. Where there are several masters, each has its own time: one
// that does not answer holds up none of the others.
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

// batch runs scripts at one master; those whose connection ended follow together once more.
func (r Runner) batch(ctx context.Context, calls []Call) []Reply {
	replies := r.sendAll(ctx, calls, false)
	var again []Call
	var at []int
	for i, c := range calls {
		if err := replies[i].Err; err != nil && c.again(ctx, err) {
			again, at = append(again, c), append(at, i)
		}
	}
	if len(again) > 0 {
		for j, reply := range r.sendAll(ctx, again, true) {
			if reply.Err != nil {
				reply.Err = twice(replies[at[j]].Err, reply.Err)
			}
			replies[at[j]] = reply
		}
	}
	for i := range replies {
		replies[i].Err = Classify(replies[i].Err)
	}
	return replies
}

// sendAll sends scripts to one master; those that it did not know follow together once more.
func (r Runner) sendAll(ctx context.Context, calls []Call, fresh bool) []Reply {
	cmds := make([]Command, len(calls))
	for i, c := range calls {
		cmds[i] = r.first(c)
	}
	if fresh {
		cmds[0].Fresh = true
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
		cmds[0].Fresh = fresh
		for j, reply := range r.Conn.DoAll(ctx, cmds[:len(again)]) {
			replies[again[j]] = reply
		}
	}
	return replies
}

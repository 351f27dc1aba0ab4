package redlock_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redisconn"
	"github.com/interlock-go/interlock/redlock"
)

// The usual turn stands twice in the long script: written out at its top, and as a case of the
// rest. Both are run here over the same random histories, on a server each, the rest without the
// turn; after each step they have answered, said and left the same.
func TestTheUsualTurnIsTheGeneralOne(t *testing.T) {
	t.Parallel()
	const name = "turns"
	histories, steps := 24, 150
	if !testing.Short() {
		histories, steps = 300, 300
	}
	text := redlock.LineText()
	begin, end := strings.Index(text, "-- The usual turn:"), strings.Index(text, "-- A master that has lost its memory")
	if begin < 0 || end < begin {
		t.Fatal("the usual turn is not where it was in the script")
	}
	usual, general := newStage(t, name, text), newStage(t, name, text[:begin]+text[end:])
	turns := 0
	for range histories {
		seed := rand.Uint64()
		h := newHistory(rand.New(rand.NewPCG(seed, 1)), name) //nolint:gosec // not for secrets
		usual.begin(t)
		general.begin(t)
		var told []string
		for range steps {
			what, words, call := h.step()
			told = append(told, what)
			var one, two string
			if call {
				one, two = usual.run(t, words), general.run(t, words)
			} else {
				one, two = usual.do(t, words...), general.do(t, words...)
			}
			one, two = one+"\n"+usual.look(t), two+"\n"+general.look(t)
			if one != two {
				t.Fatalf("seed %d, step %d: after\n%s\nthe usual turn leaves\n%s\nand the general one\n%s", seed, len(told),
					strings.Join(told[max(0, len(told)-12):], "\n"), one, two)
			}
			h.next(one)
		}
		n, _ := strconv.Atoi(usual.do(t, "GET", "test:turns"))
		turns += n
	}
	t.Logf("%d usual turns in %d steps", turns, histories*steps)
	if turns < histories*steps/40 {
		t.Errorf("%d of %d steps were usual turns: too few to show anything", turns, histories*steps)
	}
}

// A stage is a server, and a script whose clock, subscribers and remaining times are what the test
// says.
type stage struct {
	conn redisconn.Conn
	name string
	text string
}

func newStage(t *testing.T, name, text string) *stage {
	t.Helper()
	for _, r := range [][2]string{
		{"redis.call('TIME')", "{redis.call('GET', 'test:time'), '0'}"},
		{"call('TIME')", "{redis.call('GET', 'test:time'), '0'}"},
		{"redis.call('PUBLISH', ", "publish("},
		{"call('PUBLISH', ", "publish("},
		{"redis.call('PTTL', K)", "77"},
		{"count, drawn = proposal, true\n", "count, drawn = proposal, true\nredis.call('INCR', 'test:turns')\n"},
	} {
		text = strings.ReplaceAll(text, r[0], r[1])
	}
	const publish = `local function publish(to, what)
  local hear = redis.call('SISMEMBER', 'test:hear', to)
  if hear == 1 then
    redis.call('RPUSH', 'test:said', to .. ' ' .. what)
  end
  return hear
end
`
	return &stage{redistest.Rueidis(t, servertest.Redis(t).Addr()), name, publish + text}
}

func (s *stage) do(t *testing.T, words ...string) string {
	t.Helper()
	v, err := s.conn.Do(t.Context(), redisconn.Command{Words: words})
	if err != nil {
		return "error: " + err.Error()
	}
	return fmt.Sprint(v)
}

func (s *stage) begin(t *testing.T) {
	t.Helper()
	s.do(t, "FLUSHALL")
	s.do(t, "SET", "il:{redlock}:vote", "set")
	s.do(t, "SET", "test:time", "1800000000")
	s.do(t, "SADD", "test:hear", "c0", "c1", "c2")
}

func (s *stage) keys() []string {
	tag := "il:{" + s.name + "}:"
	return []string{
		s.name, tag + "qfence:" + s.name, tag + "qline:" + s.name, tag + "qclaims:" + s.name, "il:{redlock}:vote",
		"il:{redlock}:floor", "il:{redlock}:high",
	}
}

// run runs the script. The last field of an answer to one who only leaves is left out where the
// usual turn does not look for it.
func (s *stage) run(t *testing.T, args []string) string {
	t.Helper()
	s.do(t, "DEL", "test:said")
	v, err := s.conn.Do(t.Context(), redisconn.Command{Words: slices.Concat([]string{"EVAL", s.text, "7"}, s.keys(), args)})
	if err != nil {
		return "error: " + err.Error()
	}
	if f, ok := v.([]any); ok && len(args) == 4 {
		v = f[:8]
	}
	return fmt.Sprintf("%v", v)
}

// look says what is left: all keys, what was told to who hears, and for how long the name is held,
// in thousands of seconds. A line or its claims may live longer than another, but not without an
// end.
func (s *stage) look(t *testing.T) string {
	t.Helper()
	const look = `local h = redis.call('HGETALL', KEYS[4])
local claims = {}
for i = 1, #h, 2 do
  claims[#claims + 1] = h[i] .. '=' .. h[i + 1]
end
table.sort(claims)
local endless = redis.call('PTTL', KEYS[3]) == -1 or redis.call('PTTL', KEYS[4]) == -1
local v = redis.call('GET', KEYS[1]) or '-'
return {v, redis.call('GET', KEYS[2]) or '-', math.floor(redis.call('PTTL', KEYS[1]) / 1000000 + 0.5), endless and 'endless' or '',
  redis.call('ZRANGE', KEYS[3], 0, -1, 'WITHSCORES'), claims, redis.call('LRANGE', 'test:said', 0, -1),
  redis.call('GET', KEYS[7]) or '-'}`
	v, err := s.conn.Do(t.Context(), redisconn.Command{Words: slices.Concat([]string{"EVAL", look, "7"}, s.keys())})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%v", v)
}

// A history is what clients of one name do, by chance.
type history struct {
	*rand.Rand
	name    string
	calm    bool  // no other program is seen, and clocks are right
	clock   int64 // of the clients, in µs
	seconds int64 // of the server
	made    int
	known   []string // IDs, the last ones
	holder  string
}

func newHistory(r *rand.Rand, name string) *history {
	return &history{Rand: r, name: name, calm: r.IntN(4) > 0, clock: 1800000000 * 1e6, seconds: 1800000000}
}

// next takes in who holds now.
func (h *history) next(state string) {
	h.holder = ""
	if i := strings.LastIndex(state, "\n[ilq1:"); i >= 0 {
		h.holder = state[i+7 : i+7+22]
	}
}

func (h *history) some() string {
	if len(h.known) == 0 || h.IntN(40) == 0 {
		return "nobodyknowsthisoneheld"
	}
	return h.known[h.IntN(len(h.known))]
}

// step returns a command, or the arguments of a run of the script.
func (h *history) step() (what string, words []string, call bool) {
	h.clock += h.Int64N(5000)
	channel := "c" + strconv.Itoa(h.IntN(4))
	switch n := h.IntN(100); {
	case n < 2: // the holder dies, or another program's lock ends
		return "the name is free", []string{"DEL", h.name}, false
	case n < 3 && !h.calm:
		return "another program takes it", []string{"SET", h.name, "theirs", "NX", "PX", "5000000"}, false
	case n < 4 && h.holder != "":
		return "the holder is marked", []string{"SETRANGE", h.name, "27", "!"}, false
	case n < 5:
		return channel + " is deaf", []string{"SREM", "test:hear", channel}, false
	case n < 14:
		return channel + " hears", []string{"SADD", "test:hear", channel}, false
	case n < 15:
		return "the vote is gone", []string{"SET", "il:{redlock}:vote", "another"}, false
	case n < 20:
		return "the vote is back", []string{"SET", "il:{redlock}:vote", "set"}, false
	case n < 21 && !h.calm:
		return "the floor rises", []string{"SET", "il:{redlock}:floor", strconv.FormatInt(h.clock/64*64+h.Int64N(4)*64, 10)}, false
	case n < 23:
		h.seconds += h.Int64N(100)
		return "time passes", []string{"SET", "test:time", strconv.FormatInt(h.seconds, 10)}, false
	}
	leave := ""
	if h.IntN(2) > 0 {
		if leave = h.holder; leave == "" || h.IntN(8) == 0 {
			leave = h.some()
		}
	}
	proposal := h.clock / 64 * 64
	if !h.calm && h.IntN(10) == 0 {
		proposal += (h.Int64N(400) - 200) * 1e6 / 64 * 64 // a clock that is off
	}
	args := []string{leave, digit(!h.calm && h.IntN(20) == 0), "3600000", strconv.FormatInt(proposal, 10)}
	if leave != "" && h.IntN(3) == 0 {
		return fmt.Sprintf("leaves %q", args), args, true
	}
	enter := h.some()
	if h.IntN(4) > 0 || enter == leave {
		h.made++
		enter = fmt.Sprintf("claim-%016d", h.made)
		h.known = append(h.known[max(0, len(h.known)-6):], enter)
	}
	ticket := h.clock
	if h.IntN(8) == 0 {
		ticket -= h.Int64N(20000)
	}
	mode := "0"
	switch h.IntN(16) {
	case 0:
		mode = "-1"
	case 1:
		mode = strconv.FormatInt(proposal-64*h.Int64N(4), 10)
	}
	args = append(args, enter, strconv.Itoa((1+h.IntN(4))*1000000), digit(h.IntN(8) > 0), channel, fmt.Sprintf("%016d", ticket), "{info of "+enter+"}", mode, "set")
	return fmt.Sprintf("turns %q", args), args, true
}

func digit(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

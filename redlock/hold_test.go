package redlock_test

import (
	"cmp"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redlock"
)

// What a master shows of a name decides whether it is taken in.
func TestWhereAMasterIsTakenIn(t *testing.T) {
	t.Parallel()
	one := servertest.Redis(t)
	const (
		vote = "il:{redlock}:vote"
		high = "il:{redlock}:high"
	)
	id, other := driver.NewID(), driver.NewID()
	value := "ilq1:" + id + "-1234567890123456 il:push:1 {}"
	theirs := "ilq1:" + other + "-1234567890123456 il:push:2 {}"
	for what, q := range map[string]struct {
		set                 func(name string) [][]string // commands before
		waits               bool                         // it has no vote
		old                 bool                         // the claim is said to have it
		taken               bool
		lacks               string // as the script says of it
		value, counter, top string // after; counters in front of a token of 1000
	}{
		"free":                           {taken: true, value: value, counter: "1000", top: "1001000"},
		"free, and it waits":             {waits: true, taken: true, value: value, counter: "1000", top: "1001000"},
		"free, and it was to be renewed": {old: true, lacks: "2 0"},
		"another claim of ours":          {set: func(n string) [][]string { return [][]string{{"SET", n, theirs}} }, lacks: "2 0", value: theirs},
		"another program's":              {set: func(n string) [][]string { return [][]string{{"SET", n, "x"}} }, lacks: "2 0", value: "x"},
		"somebody's data":                {set: func(n string) [][]string { return [][]string{{"HSET", n, "a", "b"}} }, lacks: "2 0", value: "WRONGTYPE"},
		"its own, and broken": {set: func(n string) [][]string {
			return [][]string{{"SET", n, strings.Replace(value, "-1234567890123456", "!1234567890123456", 1)}}
		}, lacks: "3 0", value: strings.Replace(value, "-1234567890123456", "!1234567890123456", 1)},
		"its own, by an order without an answer": {set: func(n string) [][]string { return [][]string{{"SET", n, value}} }, taken: true, value: value, counter: "1000", top: "1001000"},
		"a line":                                 {set: stood(other, "7"), lacks: "2 6", counter: "7"},
		"a line, and it waits":                   {set: stood(other, "7"), waits: true, taken: true, value: strings.Replace(value, "-1234567890123456", "+1234567890123456", 1), counter: "1001", top: "1001000"},
		"its own place, and it waits":            {set: stood(id, "7"), waits: true, taken: true, value: value, counter: "1000", top: "1001000"},
		"a counter ahead":                        {set: func(n string) [][]string { return [][]string{{"SET", counterOf(n), "1900"}} }, taken: true, value: value, counter: "1900", top: "1001000"},
		"a counter further ahead than is known":  {set: func(n string) [][]string { return [][]string{{"SET", counterOf(n), "2064"}} }, lacks: "2 2064", counter: "2064"},
		"a word for a counter":                   {set: func(n string) [][]string { return [][]string{{"SET", counterOf(n), "abc"}} }, lacks: "2 0", counter: "abc"},
		"a list for a counter":                   {set: func(n string) [][]string { return [][]string{{"RPUSH", counterOf(n), "a"}} }, lacks: "2 0", counter: "WRONGTYPE"},
		"a word for the largest counter":         {set: func(string) [][]string { return [][]string{{"SET", high, "abc"}} }, lacks: "2 0"},
		"a largest counter ahead":                {set: func(string) [][]string { return [][]string{{"SET", high, "1000"}} }, taken: true, value: value, counter: "1000", top: "1000"},
	} {
		t.Run(what, func(t *testing.T) {
			one.MustDo(t, "FLUSHALL")
			const name = "name"
			if !q.waits {
				one.MustDo(t, "SET", vote, "print")
			}
			if q.set != nil {
				for _, command := range q.set(name) {
					one.MustDo(t, command...)
				}
			}
			run := []string{"EVAL", redlock.HoldText(), "6", vote, high, name, counterOf(name), lineOf(name), claimsOf(name), "60000", "print", "1", value, "1000", "2000"}
			if q.old {
				run = []string{"EVAL", redlock.HoldText(), "3", vote, high, name, "60000", "print", "1", "ilq1:" + id}
			}
			want := "1"
			if q.waits {
				want = "0"
			}
			if !q.taken {
				want += " " + q.lacks
			}
			if got := strings.Join(strings.Fields(one.MustDo(t, run...)), " "); got != want {
				t.Errorf("it says %q, want %q", got, want)
			}
			get := func(key string) string {
				got, err := one.Do("GET", key)
				if err != nil {
					got = "WRONGTYPE"
				}
				return got
			}
			if got := get(name); got != cmp.Or(q.value, "(nil)") {
				t.Errorf("at the name: %q, want %q", got, q.value)
			}
			if got := get(counterOf(name)); got != cmp.Or(q.counter, "(nil)") {
				t.Errorf("its counter: %q, want %q", got, q.counter)
			}
			if got := get(high); q.taken && got != q.top {
				t.Errorf("its largest counter: %q, want %q", got, q.top)
			}
			if q.taken && one.MustDo(t, "PTTL", name) == "-1" {
				t.Error("it stands there for ever")
			}
			if q.taken && (one.MustDo(t, "ZSCORE", lineOf(name), id) != "(nil)" || one.MustDo(t, "HEXISTS", claimsOf(name), id) != "0") {
				t.Error("who holds stands in line, too")
			}
		})
	}
	t.Run("a damaged counter beside a name that is renewed", func(t *testing.T) {
		one.MustDo(t, "FLUSHALL")
		one.MustDo(t, "MSET", vote, "print", counterOf("name"), "abc")
		one.MustDo(t, "SET", "beside", value, "PX", "9000")
		got := one.MustDo(t, "EVAL", redlock.HoldText(), "7", vote, high, "beside", "name", counterOf("name"), lineOf("name"), claimsOf("name"),
			"60000", "print", "2", "ilq1:"+id, value, "1000", "2000")
		if got = strings.Join(strings.Fields(got), " "); got != "1 4 0" || len(one.MustDo(t, "PTTL", "beside")) != len("60000") {
			t.Errorf("it says %q, want \"1 4 0\", and that the other name has 60 s", got)
		}
	})
	t.Run("a vote in another set", func(t *testing.T) {
		one.MustDo(t, "FLUSHALL")
		one.MustDo(t, "SET", vote, "another")
		_, err := one.Do("EVAL", redlock.HoldText(), "6", vote, high, "name", "c", "l", "h", "60000", "print", "1", value, "1000", "2000")
		if err == nil || !strings.Contains(err.Error(), "NOVOTE") || one.MustDo(t, "EXISTS", "name") != "0" {
			t.Errorf("error %v, want NOVOTE and nothing done", err)
		}
	})
}

func counterOf(name string) string { return "il:{" + name + "}:qfence:" + name }

func lineOf(name string) string { return "il:{" + name + "}:qline:" + name }

func claimsOf(name string) string { return "il:{" + name + "}:qclaims:" + name }

// stood returns what puts a claim into the line of a name that is free.
func stood(id, counter string) func(name string) [][]string {
	return func(name string) [][]string {
		return [][]string{
			{"SET", counterOf(name), counter},
			{"ZADD", lineOf(name), "1234567890123456", id},
			{"HSET", claimsOf(name), id, "w 60000 1 il:push:1 print {}"},
		}
	}
}

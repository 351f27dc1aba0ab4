package pglock

import (
	"bytes"
	"strings"

	"github.com/interlock-go/interlock/internal/connlock"
)

// advisory has the queries of technique session, for exclusive and shared locks whose keys have one
// part or two.
type advisory struct{ one, pair, shared, sharedPair text }

// text are the statements of all claims that are alike, except for the key. Try and wait answer a
// token. Hand releases a lock if another backend waits: it answers whether there was a lock, and
// whether the other backend still waits.
type text struct{ try, wait, leave, hand string }

// waits is whether the backend with a given pid stands in line for its lock. A look into pg_locks
// would list all locks of all backends.
const waits = "pg_blocking_pids($1) <> '{}'"

// newAdvisory writes the statements, in which token draws a token for exclusive locks.
func newAdvisory(token string) *advisory {
	return &advisory{
		one: textOf("", token, false), pair: textOf("", token, true),
		shared: textOf("_shared", "0", false), sharedPair: textOf("_shared", "0", true),
	}
}

// textOf writes the statements for functions whose names end in mode, and for keys of two parts or
// one. A case evaluates in order, and what it answers left to right; the server lets the next
// backend in before it answers an unlock.
func textOf(mode, token string, pair bool) text {
	lock, second := mode+"($1)", mode+"($2)"
	if pair {
		lock, second = mode+"($1, $2)", mode+"($2, $3)"
	}
	return text{
		try:   "select case when pg_try_advisory_lock" + lock + " then " + token + " else -1 end",
		wait:  "select case when pg_advisory_lock" + lock + " is null then 0 else " + token + " end", // it never is
		leave: "select pg_advisory_unlock" + lock,
		hand:  "select case when " + waits + " then pg_advisory_unlock" + second + "::text || ' ' || (" + waits + ")::text end",
	}
}

// text returns the statements for a claim.
func (a *advisory) text(l connlock.Lock) *text {
	pair := strings.Contains(l.Key, ",")
	switch {
	case !l.Kind.Exclusive() && pair:
		return &a.sharedPair
	case !l.Kind.Exclusive():
		return &a.shared
	case pair:
		return &a.pair
	}
	return &a.one
}

// technique returns the queries.
func (a *advisory) technique(o *Options) connlock.Technique {
	return connlock.Technique{
		Try: func(l connlock.Lock) connlock.Query { return connlock.Query{SQL: a.text(l).try, Args: parts(l)} },
		Wait: func(l connlock.Lock) connlock.Query {
			return connlock.Query{SQL: a.text(l).wait, Args: parts(l), Tells: true}
		},
		Leave: func(l connlock.Lock) connlock.Query { return connlock.Query{SQL: a.text(l).leave, Args: parts(l)} },
		Left:  left, Waits: waitsOf, Free: "select pg_advisory_unlock_all()",
		Classify: func(err error) error { return classify(err, o) },
	}
}

// hand returns the query that releases a lock if the backend with a given pid waits for it.
func (a *advisory) hand(l connlock.Lock, pid string) connlock.Query {
	return connlock.Query{SQL: a.text(l).hand, Args: append([][]byte{[]byte(pid)}, parts(l)...)}
}

// parts returns the parts of a claim's key.
func parts(l connlock.Lock) [][]byte { return bytes.Split([]byte(l.Key), []byte(", ")) }

// waitsOf asks whether the backend with a given pid stands in line.
func waitsOf(pid string) connlock.Query {
	return connlock.Query{SQL: "select " + waits, Args: [][]byte{[]byte(pid)}}
}

// left reads the answer to leave: whether there was a lock.
func left(r connlock.Reply) bool { return r.Field == "t" }

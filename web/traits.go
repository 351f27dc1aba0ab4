package web

import (
	"strings"

	"github.com/interlock-go/interlock/driver"
)

// traitsAnswer is what a store promises.
type traitsAnswer struct {
	Ordered  bool     `json:"ordered"`
	Shared   bool     `json:"shared"`
	Counted  bool     `json:"counted"`
	Mixed    bool     `json:"mixed"`
	Events   string   `json:"events"` // the kinds of claims that are told
	Expires  bool     `json:"expires"`
	Fence    string   `json:"fence"` // none, until restart, durable
	Single   bool     `json:"single"`
	MinTTL   int64    `json:"min_ttl_ms"`
	MaxTTL   int64    `json:"max_ttl_ms"` // 0: any
	Grain    int64    `json:"grain_ms"`
	Notice   int64    `json:"notice_ms"` // 0: it sees no death
	Survives []string `json:"survives"`  // process, restart, machine
}

func traitsOf(t driver.Traits) traitsAnswer {
	a := traitsAnswer{
		Ordered: t.Ordered, Shared: t.Shared, Counted: t.Counted, Mixed: t.Mixed, Events: t.Events.String(), Expires: t.Expires,
		Fence: t.Fence.String(), Single: t.Single, MinTTL: t.MinTTL.Milliseconds(), MaxTTL: t.MaxTTL.Milliseconds(),
		Grain: t.Grain.Milliseconds(), Notice: t.Notice.Milliseconds(), Survives: []string{},
	}
	for _, s := range []struct {
		what string
		does bool
	}{{"process", t.Survives.Process}, {"restart", t.Survives.Restart}, {"machine", t.Survives.Machine}} {
		if s.does {
			a.Survives = append(a.Survives, s.what)
		}
	}
	return a
}

// safety returns what a store promises, as it was opened, in sentences.
func safety(t driver.Traits) []string {
	var says []string
	add := func(s string) { says = append(says, s) }
	switch t.Fence {
	case driver.Durable:
		add("Of two exclusive leases of a name the later one has the larger token, also after a restart of the store and of its machine: what checks tokens is safe whatever happens here.")
	case driver.UntilRestart:
		add("Of two exclusive leases of a name the later one has the larger token until the store restarts or forgets; after that a token may be smaller.")
	case driver.NoFence:
		add("It draws no tokens: nothing tells a late write from a new one.")
	}
	switch s := t.Survives; {
	case s.Restart && s.Machine:
		add("Claims survive a restart of the store and of its machine, as far as its settings tell.")
	case s.Restart:
		add("Claims survive a restart of the store, and not one of its machine: after that two can hold one name until the first hears of it.")
	default:
		add("Claims do not survive a restart of the store: after one two can hold a name until the first hears of it.")
	}
	switch {
	case t.Survives.Process && t.Expires:
		add("The claims of a dead process go when their time is over.")
	case t.Notice > 0:
		add("The claims of a dead process go " + spanWords(t.Notice) + " after its death at the latest, where the store sees it.")
	}
	if t.Ordered {
		add("Who came first is served first.")
	} else {
		add("It keeps no order among those who wait.")
	}
	return says
}

// fact is a trait in words.
type fact struct{ What, Is string }

// facts returns the traits in words.
func facts(t driver.Traits, watches bool) []fact {
	word := func(is bool) string { return map[bool]string{true: "yes", false: "no"}[is] }
	ttl := spanWords(t.MinTTL) + " or more"
	if t.MaxTTL > 0 {
		ttl = spanWords(t.MinTTL) + " to " + spanWords(t.MaxTTL)
	}
	survives := strings.Join(traitsOf(t).Survives, ", ")
	if survives == "" {
		survives = "nothing"
	}
	return []fact{
		{"Ordered", word(t.Ordered)},
		{"Readers", word(t.Shared)},
		{"Permits", word(t.Counted)},
		{"Kinds mix", word(t.Mixed)},
		{"Tells who waits", t.Events.String()},
		{"Tells this page of changes", word(watches)},
		{"Claims go by themselves", word(t.Expires)},
		{"Tokens", t.Fence.String()},
		{"TTL", ttl},
		{"Claims survive", survives},
	}
}

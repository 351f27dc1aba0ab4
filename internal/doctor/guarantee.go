package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/driver"
)

// Guarantee says what a store keeps, in the words of docs/guarantees.md: what breaks its promises
// as it stands, what one thing more would break, and then its traits.
func Guarantee(t driver.Traits, found []driver.Finding) string {
	titles := func(l driver.Level) string {
		var titles []string
		for _, f := range found {
			if f.Level == l && !slices.Contains(titles, f.Title) {
				titles = append(titles, f.Title)
			}
		}
		return strings.Join(titles, ", ")
	}
	bad, warned := titles(driver.LevelBad), titles(driver.LevelWarn)
	said := "It keeps the promises of its page."
	switch {
	case bad != "":
		said = "It does not keep the promises of its page: " + bad + "."
	case warned != "":
		said = "It keeps the promises of its page, for now: " + warned + "."
	}
	return strings.Join([]string{said, survival(t), tokens(t), expiry(t)}, " ")
}

// survival says what claims outlive.
func survival(t driver.Traits) string {
	var stays, goes []string
	for _, s := range []struct {
		what  string
		stays bool
	}{{"the end of its process", t.Survives.Process}, {"a restart of the store", t.Survives.Restart}, {"one of the store's machine", t.Survives.Machine}} {
		if s.stays {
			stays = append(stays, s.what)
		} else {
			goes = append(goes, s.what)
		}
	}
	switch {
	case goes == nil:
		return "A lock survives, until its TTL is over, " + list(stays, "and") + "."
	case stays == nil:
		return "A lock does not survive " + list(goes, "or") + "."
	}
	return "A lock survives " + list(stays, "and") + ", and not " + list(goes, "or") + "."
}

// list is a list as people write it.
func list(words []string, last string) string {
	if n := len(words); n > 1 {
		return strings.Join(words[:n-1], ", ") + " " + last + " " + words[n-1]
	}
	return strings.Join(words, "")
}

// tokens says what tokens survive.
func tokens(t driver.Traits) string {
	switch t.Fence {
	case driver.Durable:
		return "Tokens grow over restarts of the store and of its machine."
	case driver.UntilRestart:
		return "Tokens grow until the store restarts or forgets."
	case driver.NoFence:
	}
	return "There are no tokens: nothing keeps out a holder that was frozen and goes on."
}

// expiry says when the lock of a dead holder goes.
func expiry(t driver.Traits) string {
	out := "when the TTL is over"
	if t.Grain > 0 {
		out = fmt.Sprintf("at most %v after the TTL", t.Grain)
	}
	switch {
	case t.Notice > 0 && t.Expires:
		return fmt.Sprintf("Who has died is noticed within %v, and who hangs is out %s.", t.Notice, out)
	case t.Notice > 0:
		return fmt.Sprintf("Who has died is noticed within %v.", t.Notice)
	}
	return "Who has died is out " + out + "."
}

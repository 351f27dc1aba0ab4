package cli

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// plainLine is the line of a run that is written plainly.
type plainLine struct {
	commonFlags
	Run runCommand
}

// plainRun reads the command line of a run that is written plainly, and returns nil for every other
// one, right or wrong: these are kong's, and all messages are. Kong first makes a model of all
// commands and flags with their help, which takes longer than to take the lock. Plain is
//
//	run [flag]… NAME [flag]… -- command [argument]…
//
// where a flag is one word, or has its value behind a = or in the next word. A test holds this to
// what kong makes of the same words.
func plainRun(args []string) *plainLine {
	end := slices.Index(args, "--")
	if end < 2 || args[0] != "run" || end+1 == len(args) || strings.HasPrefix(args[end+1], "-") {
		return nil
	}
	store := os.Getenv("INTERLOCK_STORE")
	if _, set := os.LookupEnv("INTERLOCK_STORE_FILE"); set || !utf8.ValidString(store) {
		return nil
	}
	line := &plainLine{commonFlags: commonFlags{storeFlags: storeFlags{Store: store, args: args}}}
	r := &line.Run
	r.ExitHeld, r.ExitLost, r.ExitStore, r.ExitData, r.ExitUsage = exitHeld, exitLost, exitStore, exitData, exitUsage
	switches := map[string]*bool{
		"-n": &r.Try, "--try": &r.Try, "--nb": &r.Try, "--nonblock": &r.Try,
		"-x": &r.Exclusive, "-e": &r.Exclusive, "--exclusive": &r.Exclusive,
		"-s": &r.Shared, "--shared": &r.Shared, "-q": &r.Quiet, "--quiet": &r.Quiet,
		"--kill-rest": &r.KillRest, "--refuse-rest": &r.RefuseRest,
		"-v": &line.Verbose, "--verbose": &line.Verbose, "--json": &line.JSON,
	}
	values := map[string]func(string) error{
		"--store": into(&line.Store, asGiven),
		"-w":      intoNew(&r.Wait, waitTime), "--wait": intoNew(&r.Wait, waitTime), "--timeout": intoNew(&r.Wait, waitTime),
		"--permits": intoNew(&r.Permits, number),
		"--ttl":     intoNew(&r.TTL, time.ParseDuration), "--grace": intoNew(&r.Grace, time.ParseDuration),
		"--min-hold": intoNew(&r.MinHold, time.ParseDuration), "--max-hold": intoNew(&r.MaxHold, time.ParseDuration),
		"--note": intoNew(&r.Note, asGiven),
		"-E":     into(&r.ExitHeld, number), "--exit-held": into(&r.ExitHeld, number), "--conflict-exit-code": into(&r.ExitHeld, number),
		"--exit-lost":  into(&r.ExitLost, number),
		"--exit-store": into(&r.ExitStore, number), "--exit-data": into(&r.ExitData, number), "--exit-usage": into(&r.ExitUsage, number),
	}
	for own := args[1:end]; len(own) > 0; {
		word := own[0]
		own = own[1:]
		if !strings.HasPrefix(word, "-") {
			if word == "" || r.Name != "" || !utf8.ValidString(word) {
				return nil
			}
			r.Name = word
			continue
		}
		if on := switches[word]; on != nil {
			*on = true
			continue
		}
		flag, value, given := strings.Cut(word, "=")
		if given && !strings.HasPrefix(flag, "--") {
			return nil
		}
		if !given && len(own) > 0 && !strings.HasPrefix(own[0], "-") {
			value, own = own[0], own[1:]
		}
		if set := values[flag]; set == nil || value == "" || !utf8.ValidString(value) || set(value) != nil {
			return nil
		}
	}
	kinds := 0
	for _, chosen := range []bool{r.Exclusive, r.Shared, r.Permits != nil} {
		if chosen {
			kinds++
		}
	}
	if r.Name == "" || r.Try && r.Wait != nil || kinds > 1 || r.KillRest && r.RefuseRest {
		return nil
	}
	r.Command = args[end:]
	return line
}

// into returns a function that reads a value into to, intoNew one that reads it into a new
// variable.
func into[T any](to *T, read func(string) (T, error)) func(string) error {
	return func(s string) (err error) {
		*to, err = read(s)
		return err
	}
}

func intoNew[T any](to **T, read func(string) (T, error)) func(string) error {
	return func(s string) error {
		*to = new(T)
		return into(*to, read)(s)
	}
}

func asGiven(s string) (string, error) { return s, nil }

// number reads a number as kong does, which also knows 0x10.
func number(s string) (int, error) {
	n, err := strconv.ParseInt(s, 0, strconv.IntSize)
	return int(n), err
}

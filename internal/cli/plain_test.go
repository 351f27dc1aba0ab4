package cli

import (
	"io"
	"reflect"
	"slices"
	"testing"

	"github.com/alecthomas/kong"
	"pgregory.net/rapid"
)

// byKong is the line as kong reads it, or nil if it is wrong or asks for help.
func byKong(t interface{ Fatal(...any) }, args []string) *commandLine {
	line := &commandLine{commonFlags: commonFlags{storeFlags: storeFlags{args: args}}}
	parser, err := newParser(line, terminal{out: io.Discard, err: io.Discard}, func(int) { panic("exit") })
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := parser.Parse(args)
	if err != nil || parsed.Command() == "" {
		return nil
	}
	return line
}

// same reports whether two lines say the same of a run.
func same(a *plainLine, b *commandLine) bool {
	return reflect.DeepEqual(a.commonFlags, b.commonFlags) && reflect.DeepEqual(a.Run, b.Run)
}

// What is read by hand is what kong reads, of lines that are made of the flags of run and of words
// that people mix up with them.
func TestPlainRunIsAsKongReadsIt(t *testing.T) {
	t.Setenv("INTERLOCK_STORE", "file:/of/the/environment")
	flags := []string{
		"-n", "--try", "-w", "--wait", "-s", "--shared", "--permits", "--ttl", "--grace", "--min-hold", "--max-hold", "--note", "--kill-rest", "--refuse-rest", "-q", "--quiet",
		"-E", "--exit-held", "--exit-lost", "--exit-store", "--exit-data", "--exit-usage", "--store", "--json", "-v", "--verbose", "--unknown", "--store-file", "-x", "-e", "--exclusive", "--nb", "--nonblock", "--timeout", "--conflict-exit-code", "--e", "-xn", "-nq", "-w10",
	}
	values := []string{"10", "0", "1m", "500ms", "0x10", "3.5", "file:/tmp/s", "a b", "", "-1", "true", "run", "x=y", "ü", "\xff"}
	word := rapid.OneOf(
		rapid.SampledFrom(flags), rapid.SampledFrom(values), rapid.Just("job"),
		rapid.Custom(func(t *rapid.T) string {
			return rapid.SampledFrom(flags).Draw(t, "flag") + "=" + rapid.SampledFrom(values).Draw(t, "value")
		}),
	)
	// A flag with a value that fits is rare by chance.
	fitting := rapid.SampledFrom([][]string{
		{"-n"},
		{"--try"},
		{"-w", "10"},
		{"--wait", "1m"},
		{"--wait=0.5"},
		{"--nb"},
		{"--nonblock"},
		{"--timeout", "10"},
		{"--timeout=1m"},
		{"-x"},
		{"-e"},
		{"--exclusive"},
		{"-s"},
		{"--shared"},
		{"--permits", "3"},
		{"--permits=0x10"},
		{"--ttl", "3s"},
		{"--ttl=1m"},
		{"--grace", "1s"},
		{"--min-hold=1m"},
		{"--max-hold", "1h"},
		{"--note", "nightly run"},
		{"--note=a=b"},
		{"--kill-rest"},
		{"--refuse-rest"},
		{"-q"},
		{"--quiet"},
		{"-E", "3"},
		{"--conflict-exit-code", "2"},
		{"--conflict-exit-code=4"},
		{"--exit-held=1"},
		{"--exit-lost", "2"},
		{"--exit-store=3"},
		{"--exit-data", "4"},
		{"--exit-usage=5"},
		{"--store", "file:/tmp/s"},
		{"--store=redis://h"},
		{"--json"},
		{"-v"},
		{"--verbose"},
	})
	rapid.Check(t, func(t *rapid.T) {
		args := []string{"run"}
		named := rapid.IntRange(0, 3).Draw(t, "name at")
		for i := range 4 {
			if i == named {
				args = append(args, "job")
			}
			if rapid.Bool().Draw(t, "flag") {
				args = append(args, fitting.Draw(t, "fitting")...)
			}
		}
		if rapid.IntRange(0, 2).Draw(t, "mixed up") == 0 {
			at := rapid.IntRange(0, len(args)).Draw(t, "at")
			args = slices.Insert(args, at, word.Draw(t, "word"))
		}
		args = append(args, rapid.SampledFrom([][]string{{"--", "true"}, {"--", "sh", "-c", "x", "--"}, {"--", "cp", "--", "-n"}, {"--"}, {}, {"--", "--", "true"}, {"--", "-5", "--", "true"}, {"true"}}).Draw(t, "command")...)
		got := plainRun(args)
		if got == nil {
			return
		}
		if want := byKong(t, args); want == nil || !same(got, want) {
			t.Fatalf("%q\nby hand %+v\nby kong %+v", args, got, want)
		}
	})
}

// Each flag of run is read by hand: a new one is, too, or is here with the reason why not.
func TestPlainRunKnowsTheFlagsOfRun(t *testing.T) {
	var line commandLine
	parser, err := newParser(&line, terminal{out: io.Discard, err: io.Discard}, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	others := []string{
		"help", "version", // answer, and run nothing
		"store-file", // a path that kong completes; such a store is on a server, where the start is the least
	}
	i := slices.IndexFunc(parser.Model.Children, func(n *kong.Node) bool { return n.Name == "run" })
	for _, f := range slices.Concat(parser.Model.Flags, parser.Model.Children[i].Flags) {
		if slices.Contains(others, f.Name) {
			continue
		}
		with := func(flag string) []string {
			switch {
			case f.IsBool():
				return []string{"run", flag, "job", "--", "true"}
			case f.Name == "wait", f.Name == "permits", f.Target.Kind() == reflect.Int:
				return []string{"run", flag, "10", "job", "--", "true"}
			}
			return []string{"run", flag, "10s", "job", "--", "true"} // a duration, or any text
		}
		for _, flag := range spellings(f) {
			args := with(flag)
			if got, want := plainRun(args), byKong(t, args); got == nil || !same(got, want) {
				t.Errorf("%q\nby hand %+v\nby kong %+v", args, got, want)
			}
		}
	}
}

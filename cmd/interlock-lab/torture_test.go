package main

import (
	"reflect"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/internal/cli"
	"github.com/interlock-go/interlock/torture"
	"github.com/interlock-go/interlock/torture/flawed"
)

// The help of torture names everything that can be asked for.
func TestTortureHelpNamesWhatThereIs(t *testing.T) {
	command := reflect.TypeFor[tortureCommand]()
	help := func(field string) string {
		f, _ := command.FieldByName(field)
		return f.Tag.Get("help")
	}
	var flaws []string
	for _, f := range flawed.Flaws() {
		flaws = append(flaws, f.Name)
	}
	for field, names := range map[string][]string{"Flawed": flaws, "Start": torture.Topologies(), "Faults": torture.Faults()} {
		for _, name := range names {
			if !strings.Contains(help(field), name) {
				t.Errorf("the help of %s does not name %s: %s", field, name, help(field))
			}
		}
	}
}

// What cannot be together is a usage error before anything is started.
func TestTortureWantsOneStore(t *testing.T) {
	for _, args := range [][]string{
		{"torture", "--store", "mem:", "--start", "redis"},
		{"torture", "--store", "mem:", "--flawed", "all"},
	} {
		var out, errs strings.Builder
		status := run(args, terminal{out: &out, err: &errs})
		if status != cli.ExitUsage || !strings.Contains(errs.String(), "leave out --store") {
			t.Errorf("%q: status %d, %q, want %d and that --store is to be left out", args, status, errs.String(), cli.ExitUsage)
		}
	}
}

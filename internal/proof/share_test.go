//go:build unix

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A share is a part of its own, and the rest is without it.
func TestShares(t *testing.T) {
	file := filepath.Join(t.TempDir(), "proof")
	read := func(text string) ([]share, error) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return shares(file)
	}
	all, err := read("# long\nhandoffs by rows: ^TestHandoffs$/^rows$ once norace HANDOFFS=300000\n\nthe others: ^TestOther$\n")
	if err != nil {
		t.Fatal(err)
	}
	base := part{name: "./p", of: "m/p", rounds: 1}
	var got []string
	for _, p := range tests(pkg{path: "m/p", name: "./p", shares: all}, base, false) {
		got = append(got, p.name+": "+strings.Join(append(p.env, p.run...), " "))
	}
	const skip = "go test -json -count=1 -timeout=20m0s -race -skip=^TestHandoffs$/^rows$|^TestOther$ m/p"
	const other = "go test -json -count=1 -timeout=20m0s -race -run=^TestOther$ m/p"
	want := []string{
		"./p: " + skip,
		"./p on a slow machine: go run ./internal/slow " + skip,
		"./p, handoffs by rows: HANDOFFS=300000 go test -json -count=1 -timeout=20m0s -run=^TestHandoffs$/^rows$ m/p",
		"./p, the others: " + other,
		"./p, the others on a slow machine: go run ./internal/slow " + other,
	}
	if !slices.Equal(got, want) {
		t.Errorf("parts\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if bubbles := tests(pkg{path: "m/p", name: "./p", shares: all}, base, true); len(bubbles) != 3 || bubbles[2].name != "./p, the others, 20 times" || bubbles[2].rounds != 20 {
		t.Errorf("in bubbles: %+v", bubbles)
	}
	if none, err := shares(filepath.Join(t.TempDir(), "proof")); err != nil || none != nil {
		t.Errorf("of no file: %v, %v", none, err)
	}
	for _, text := range []string{"rows\n", "rows: \n", ": ^TestA$\n", "rows: ^TestA$ twice\n", "a: ^TestA$\na: ^TestB$\n"} {
		if _, err := read(text); err == nil || !strings.Contains(err.Error(), "want") {
			t.Errorf("%q: %v, want what would be right", text, err)
		}
	}
}

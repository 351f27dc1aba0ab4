package process

import (
	"strings"
	"testing"
)

func TestJournalFindsTheLineAndKeepsTheEnd(t *testing.T) {
	t.Parallel()
	j := newJournal("is up")
	for _, part := range []string{"the server is not\n", "the server is u", "p", " now"} {
		if _, err := j.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
		select {
		case <-j.ready:
			t.Fatalf("ready after %q, in the middle of a line", part)
		default:
		}
	}
	if _, err := j.Write([]byte("\nand on\n")); err != nil {
		t.Fatal(err)
	}
	<-j.ready
	if got, want := j.String(), "the server is not\nthe server is up now\nand on\n"; got != want {
		t.Errorf("kept %q, want %q", got, want)
	}
	long := strings.Repeat("x", journalSize)
	for _, part := range []string{long, "the server is up\n"} {
		if _, err := j.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	if got := j.String(); len(got) != journalSize || !strings.HasSuffix(got, "xthe server is up\n") {
		t.Errorf("kept %d bytes of %d, ending in %q", len(got), journalSize, got[max(0, len(got)-30):])
	}
}

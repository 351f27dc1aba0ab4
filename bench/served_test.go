package main

import (
	"strings"
	"testing"

	"github.com/interlock-go/interlock/internal/servertest"
)

// Looking at the server leaves no trace in what lies between two looks, and
// what is done between them is counted once.
func TestSince(t *testing.T) {
	s := &site{redis: []*servertest.Server{servertest.Redis(t), servertest.Redis(t)}}
	before, err := s.look()
	if err != nil {
		t.Fatal(err)
	}
	idle, err := s.look()
	if err != nil {
		t.Fatal(err)
	}
	if did := idle.since(before); did.scripts != 0 || did.commands != 0 || did.packets() != 0 {
		t.Errorf("looking costs %+v", did)
	}
	// One packet in, one out, and the end of the connection; the script and
	// its PING are two commands.
	if _, err := s.redis[0].Do("EVAL", `return redis.call("PING")`, "0"); err != nil {
		t.Fatal(err)
	}
	after, err := s.look()
	if err != nil {
		t.Fatal(err)
	}
	if did := after.since(idle); did.scripts != 1 || did.commands != 2 || did.scripted <= 0 || did.received != 2 || did.sent != 1 {
		t.Errorf("a script costs %+v", did)
	}
}

func TestParseServedWantsAllCounts(t *testing.T) {
	_, err := parseServed("total_commands_processed:1\r\ntotal_reads_processed:2\r\n")
	if err == nil || !strings.Contains(err.Error(), "total_writes_processed") {
		t.Errorf("an answer without total_writes_processed: %v", err)
	}
}

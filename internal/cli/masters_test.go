package cli_test

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/internal/servertest"
)

// The masters of a quorum are shown with what keeps them from voting, and who is dead is given up,
// and nobody else.
func TestMasters(t *testing.T) {
	t.Parallel()
	set := []*servertest.Server{servertest.Redis(t), servertest.Redis(t), servertest.Redis(t)}
	store := "redlock://" + set[0].Addr() + "," + set[1].Addr() + "," + set[2].Addr()
	masters := func(status int, args ...string) (out, complaint string) {
		t.Helper()
		command := exec.Command("interlock", append([]string{"masters", "--store", store}, args...)...)
		var text, wrong strings.Builder
		command.Stdout, command.Stderr = &text, &wrong
		err := command.Run()
		var exit *exec.ExitError
		if got := command.ProcessState.ExitCode(); got != status || err != nil && !errors.As(err, &exit) {
			t.Fatalf("interlock masters %q: status %d, %v, want %d: %s", args, got, err, status, wrong.String())
		}
		return text.String(), wrong.String()
	}
	said := func(text, want string) {
		t.Helper()
		if !strings.Contains(text, want) {
			t.Errorf("it says %q, want %q", text, want)
		}
	}
	out, _ := masters(0)
	if strings.Count(out, "yes") != 3 {
		t.Errorf("three masters that vote are shown as %q", out)
	}
	if err := set[2].Kill(); err != nil {
		t.Fatal(err)
	}
	_, complaint := masters(69, "--give-up", "1,3")
	said(complaint, "master 1 ("+set[0].Addr()+") answers, so it is not given up")
	_, complaint = masters(64, "--give-up", "4")
	said(complaint, "want a number from 1 to 3")
	_, complaint = masters(0, "--give-up", "3")
	said(complaint, "may be followed by a smaller one")
	out, _ = masters(0, "--json")
	said(out, `{"master":"master 2 (`+set[1].Addr()+`)","votes":true}`)
	said(out, `"votes":false,"why":"`)
	store += "?fence_base=1000000"
	out, _ = masters(0)
	said(out, "master 2 ("+set[1].Addr()+")")
	store = "file:" + t.TempDir()
	_, complaint = masters(64)
	said(complaint, "want --store redlock://A,B,C")
	store += "?fence_base=1000000"
	_, complaint = masters(64)
	said(complaint, "want --store redlock://A,B,C")
}

// doctor, ls and show write nothing to masters that nobody has used: a max_ttl given by mistake
// would be that of their set.
func TestALookMakesNoSetOfMasters(t *testing.T) {
	t.Parallel()
	set := []*servertest.Server{servertest.Redis(t), servertest.Redis(t), servertest.Redis(t)}
	store := "redlock://" + set[0].Addr() + "," + set[1].Addr() + "," + set[2].Addr() + "?max_ttl=3s"
	for _, words := range [][]string{{"doctor"}, {"ls"}, {"show", "job"}} {
		out, err := exec.Command("interlock", append(words, "--store", store)...).CombinedOutput()
		if words[0] == "doctor" && !strings.Contains(strings.Join(strings.Fields(string(out)), " "), "makes one of 3 masters with max_ttl 3s") {
			t.Errorf("the doctor says %q, want which set would be made", out)
		}
		for i, s := range set {
			if n := s.MustDo(t, "DBSIZE"); n != "0" {
				t.Errorf("interlock %q: %v: master %d has %s keys, want none: %s", words, err, i+1, n, out)
			}
		}
	}
}

// A store that keeps no TTL of 15 s gives the nearest where none was chosen.
func TestRun_TakesTheNearestTTL(t *testing.T) {
	t.Parallel()
	store := "redlock://" + servertest.Redis(t).Addr() + "?max_ttl=3s"
	for _, words := range [][]string{{"run", "job"}, {"elect", "job"}, {"run", "--ttl", "2s", "job"}} {
		if out, err := exec.Command("interlock", append(words, "--store", store, "--", "true")...).CombinedOutput(); err != nil {
			t.Errorf("interlock %q: %v: %s", words, err, out)
		}
	}
	out, err := exec.Command("interlock", "run", "--ttl", "15s", "job", "--store", store, "--", "true").CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 64 || !strings.Contains(string(out), "TTL of 15s") {
		t.Errorf("a TTL that the store does not keep: %v: %s", err, out)
	}
}

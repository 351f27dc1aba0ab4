//go:build linux

package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// unit reads one of the units that the packages bring, for the job report, with the paths of a
// workshop in it.
func (w workshop) unit(t *testing.T, name string) (text string, settings map[string]string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "deploy", "systemd", name))
	if err != nil {
		t.Fatal(err)
	}
	interlock, err := exec.LookPath("interlock")
	if err != nil {
		t.Fatal(err)
	}
	text = strings.NewReplacer("/usr/bin/interlock", interlock, "/etc/interlock/jobs/%i", w.job, "/etc/interlock/store", filepath.Join(w.dir, "store")).Replace(string(raw))
	settings = map[string]string{}
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(key, "#") {
			settings[key] = strings.ReplaceAll(value, "%i", "report")
		}
	}
	return text, settings
}

// The units of the packages are such as systemd reads; the job runs on one machine, and what is
// left of old names goes.
func TestUnitsOfThePackages(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.write(t, "store", "file:"+filepath.Join(w.dir, "locks")+"\n")
	verify := []string{"verify", "--man=no"}
	for _, name := range []string{"interlock@.service", "interlock@.timer", "interlock-prune.service", "interlock-prune.timer", "interlock-serve.service", "interlock-serve.socket"} {
		text, _ := w.unit(t, name)
		verify = append(verify, w.write(t, strings.Replace(name, "@", "@report", 1), text))
	}
	if said, status := w.end(t, "systemd-analyze", verify...); status != 0 || said != "" {
		t.Errorf("systemd-analyze verify: status %d\n%s", status, said)
	}

	_, server := w.unit(t, "interlock-serve.service")
	if families := strings.Fields(server["RestrictAddressFamilies"]); !slices.Contains(families, "AF_NETLINK") {
		t.Errorf("the server may use %q: without AF_NETLINK net.InterfaceAddrs fails, and requests for the machine's own address are answered by 421", families)
	}
	_, job := w.unit(t, "interlock@.service")
	w.env = append(w.env, job["Environment"])
	command := strings.Fields(job["ExecStart"])
	w.begin(t, command[0], command[1:]...)
	if said, status := w.end(t, command[0], command[1:]...); status != 75 || job["SuccessExitStatus"] != "75" || !strings.Contains(said, `"report" is held by`) {
		t.Errorf("the next machine ends with %d, want 75, as SuccessExitStatus says; it says %s", status, said)
	}
	if n := w.ran(); n != 1 {
		t.Errorf("the job ran %d times, want once", n)
	}
	_, prune := w.unit(t, "interlock-prune.service")
	command = strings.Fields(prune["ExecStart"])
	if said, status := w.end(t, command[0], command[1:]...); status != 0 || !strings.HasPrefix(said, "removed what ") {
		t.Errorf("the store is pruned with status %d: %s", status, said)
	}
}

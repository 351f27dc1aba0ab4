package cli_test

import (
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/interlock-go/interlock/internal/guard/guardtest"
)

// What the page about flock says of a store for several users is done as it stands there: root and
// a user of the group then exclude each other. Only root can make users.
func TestPageFromFlock_OneStoreForSeveralUsers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("not root: no user can be made")
		return
	}
	name := "interlockshared" + strconv.Itoa(os.Getpid())
	group := "locks" + strconv.Itoa(os.Getpid())
	system := func(program string, args ...string) {
		t.Helper()
		if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", program, err, out)
		}
	}
	system("useradd", "-m", name)
	t.Cleanup(func() {
		system("userdel", "-r", name)
		system("groupdel", group)
	})
	u, err := user.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	interlock := filepath.Join(u.HomeDir, "interlock") // the test's own is in a folder that is root's alone
	copyProgram(t, interlock)

	const dir = "/var/lib/interlock-shared"
	here := strings.NewReplacer("locks", group, "deploy", name, dir, filepath.Join(u.HomeDir, "shared"))
	var recipe, store string
	for _, b := range page(t, "from-flock.md") {
		switch {
		case strings.HasPrefix(b[2], "groupadd "):
			recipe = here.Replace(b[2])
		case strings.HasPrefix(b[2], "INTERLOCK_STORE="):
			store = strings.TrimSpace(here.Replace(b[2]))
		}
	}
	if recipe == "" || store == "" {
		t.Fatalf("the page has the recipe %q and the store %q", recipe, store)
	}
	system("bash", "-e", "-c", recipe)

	// as runs interlock as root or as the user, by runuser, who reads the groups as a login does.
	as := func(who string, args ...string) *exec.Cmd {
		c := exec.Command("runuser", append([]string{"-u", who, "--", interlock}, args...)...)
		c.Env = append(os.Environ(), store, "HOME="+u.HomeDir)
		c.Dir = u.HomeDir
		return c
	}
	for _, who := range [][2]string{{"root", name}, {name, "root"}} {
		holder := as(who[0], "run", "nightly", "--", "cat")
		end, err := holder.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := holder.Start(); err != nil {
			t.Fatal(err)
		}
		guardtest.Eventually(t, who[0]+" holds", func() bool {
			out, _ := as(who[0], "ls").Output()
			return strings.Contains(string(out), "holds")
		})
		out, err := as(who[1], "run", "--try", "nightly", "--", "true").CombinedOutput()
		if err == nil || !strings.Contains(string(out), `"nightly" is held by `) || !strings.Contains(string(out), who[0]+"@") {
			t.Errorf("%s while %s holds: %v: %s", who[1], who[0], err, out)
		}
		_ = end.Close()
		if err := holder.Wait(); err != nil {
			t.Errorf("%s: %v", who[0], err)
		}
	}
}

// A user whose number has no entry, as in many containers, is shown by the number. Only root can
// become another user.
func TestUserWithoutAnEntry(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("not root: nobody else can run it")
		return
	}
	const id = 54321
	if u, err := user.LookupId(strconv.Itoa(id)); err == nil {
		t.Fatalf("%d is %s here: want a number that nobody has", id, u.Username)
	}
	dir, err := os.MkdirTemp("", "interlock") // which is in one that others may enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chown(dir, id, id); err != nil {
		t.Fatal(err)
	}
	interlock := filepath.Join(dir, "interlock")
	copyProgram(t, interlock)
	c := exec.Command(interlock, "run", "job", "--", interlock, "ls", "--json")
	c.Dir, c.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "INTERLOCK_STORE=file:" + filepath.Join(dir, "store")}
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: id, Gid: id}}
	if out, err := c.CombinedOutput(); err != nil || !strings.Contains(string(out), `"user":"54321"`) {
		t.Errorf("%v, want the user 54321:\n%s", err, out)
	}
}

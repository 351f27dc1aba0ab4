package zklock_test

import (
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/foreigntest"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/storetest"
)

// The command and the other libraries keep each other out, whoever holds, and who waits gets in
// when the holder has released. Curator's read/write lock is kept out by the command's readers
// alone, since it has no writers.
func TestForeignersAndTheCommand(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("the command is built, and seven programs of other libraries run: make proof")
	}
	path := filepath.Join(t.TempDir(), "interlock")
	if out, err := exec.Command("go", "build", "-o", path, "github.com/interlock-go/interlock/cmd/interlock").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	server := servertest.ZooKeeper(t, "tickTime=1000") // sessions as long as the command's
	for theirs, ours := range map[foreigntest.Kind]struct {
		params string
		flags  []string
		most   int // that hold at once
		shows  string
	}{
		foreigntest.CuratorMutex:          {shows: "mutex", most: 1},
		foreigntest.CuratorWrite:          {flags: []string{"--shared"}, shows: "write", most: 1},
		foreigntest.CuratorSemaphore:      {flags: []string{"--permits", "2"}, shows: "1/?", most: 2},
		foreigntest.CuratorSemaphoreMutex: {params: "?mutex=semaphore", shows: "1/?", most: 1},
		foreigntest.GoZooKeeper:           {shows: "mutex", most: 1},
		foreigntest.KazooLock:             {params: "?layout=kazoo", shows: "mutex", most: 1},
		foreigntest.KazooRead:             {params: "?layout=kazoo", shows: "read", most: 1},
	} {
		t.Run(string(theirs), func(t *testing.T) {
			name := string(theirs)
			interlock := func(args ...string) *exec.Cmd {
				c := exec.CommandContext(t.Context(), path, args...)
				c.Env = append(c.Environ(), "INTERLOCK_STORE="+server.URL()+ours.params)
				return c
			}
			run := func(flag string, args ...string) *exec.Cmd {
				return interlock(append(append([]string{"run", flag}, ours.flags...), append([]string{name, "--"}, args...)...)...)
			}
			they := foreigntest.Start(t, theirs, []string{server.Addr()}, name, 20*time.Second)
			for range ours.most {
				they.MustLock(t, patience)
			}
			try := run("--try", "true")
			if out, err := try.CombinedOutput(); try.ProcessState.ExitCode() != 75 {
				t.Errorf("run --try beside another holder: %v, want status 75; %s", err, out)
			}
			if out, err := interlock("ls", "-o", "wide").CombinedOutput(); err != nil || !strings.Contains(string(out), ours.shows+" ") || !strings.Contains(string(out), " foreign") {
				t.Errorf("ls: %v, want a foreign %s; %s", err, ours.shows, out)
			}
			d, _ := connect(t, server, ours.params)
			t.Cleanup(func() { _ = d.Close(context.Background()) })
			var said bytes.Buffer
			waits := run("--wait=5m", "echo", "ran")
			waits.Stdout, waits.Stderr = &said, &said
			if err := waits.Start(); err != nil {
				t.Fatal(err)
			}
			storetest.Until(t, "the command waits", func() bool { return waiters(t, d, name) == 1 })
			they.MustUnlock(t)
			if err := waits.Wait(); err != nil || !strings.HasSuffix(said.String(), "ran\n") {
				t.Errorf("run behind another holder: %v; %s", err, said.String())
			}
			for range ours.most - 1 {
				they.MustUnlock(t)
			}
			var all []func()
			for range ours.most {
				holds := run("--wait=5m", "cat") // which ends with its input
				in, err := holds.StdinPipe()
				if err != nil {
					t.Fatal(err)
				}
				if err := holds.Start(); err != nil {
					t.Fatal(err)
				}
				all = append(all, func() {
					_ = in.Close()
					if err := holds.Wait(); err != nil {
						t.Errorf("run: %v", err)
					}
				})
			}
			storetest.Until(t, "the command holds", func() bool {
				line, err := d.(driver.Inspector).Line(within(t), name)
				return err == nil && len(line.Claims) == ours.most && line.Claims[ours.most-1].Held
			})
			they.MustNotLock(t, "interlock run")
			for _, end := range all {
				end()
			}
			they.MustLock(t, patience)
			they.MustUnlock(t)
		})
	}
}

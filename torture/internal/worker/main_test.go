//go:build linux || darwin

package worker

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/interlock-go/interlock/filelock"
	"github.com/interlock-go/interlock/internal/workers/monotonic"
)

func TestMain(m *testing.M) {
	Main()
	os.Exit(m.Run())
}

// A worker whose conductor dies without a word does not live on.
func TestWorkerEndsWithItsConductor(t *testing.T) {
	dir := t.TempDir()
	text := fmt.Sprintf(`{"Task":"storm","Store":%q,"TTL":1000000000,"Grace":100000000,"Log":%q,"Names":["a"],"Files":[%q],"Count":1,"Guard":"fenced"}`+"\n",
		"file:"+filepath.Join(dir, "locks"), filepath.Join(dir, "diary"), filepath.Join(dir, "number"))
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), Variable+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(in, text); err != nil {
		t.Fatal(err)
	}
	d, err := OpenLog(filepath.Join(dir, "diary"))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	d.head.end.Store(int64(monotonic.Now().Add(time.Hour)))
	for deadline := time.Now().Add(30 * time.Second); d.head.grants.Load() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the worker does not work")
		}
	}
	in.Close()
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 3 {
		t.Errorf("the worker ended with %v, want status 3", err)
	}
}

// What is no job is an error, not a worker that does nothing.
func TestWorkWantsAJob(t *testing.T) {
	for _, text := range []string{"x\n", `{"Task":"dance","Log":"` + filepath.Join(t.TempDir(), "diary") + `"}` + "\n"} {
		if err := work(bufio.NewReader(io.MultiReader(strings.NewReader(text), forever{}))); err == nil {
			t.Errorf("%q is taken for a job", text)
		}
	}
}

// forever is an input that says nothing and does not end.
type forever struct{}

func (forever) Read([]byte) (int, error) { select {} }

//go:build linux

package cli_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/internal/guard/guardtest"
)

// person is somebody at a terminal with interlock in the PATH and a store of their own.
type person struct {
	*guardtest.Terminal
	env []string
}

func environment(t *testing.T) []string {
	t.Helper()
	return []string{"INTERLOCK_STORE=file:" + filepath.Join(t.TempDir(), "store")}
}

func sit(t *testing.T, program string, args ...string) person {
	t.Helper()
	env := environment(t)
	return person{guardtest.Open(t, env, program, args...), env}
}

func sitInShell(t *testing.T) person {
	t.Helper()
	env := environment(t)
	return person{guardtest.Shell(t, env...), env}
}

// seesHeld waits until the lock is held.
func (p person) seesHeld(t *testing.T, name string) {
	t.Helper()
	guardtest.Eventually(t, name+" is held", func() bool {
		ls := exec.Command("interlock", "ls", name)
		ls.Env = append(ls.Environ(), p.env...)
		out, _ := ls.Output()
		return strings.Contains(string(out), "holds")
	})
}

// Ctrl-C ends the command, interlock, and the script around them.
func TestTerminal_CtrlC(t *testing.T) {
	for name, script := range map[string]string{
		"line":     "interlock run job -- sleep 1000; echo AFT''ER",
		"loop":     "for i in 1 2 3; do interlock run job -- sleep 1000; echo AFT''ER; done",
		"pipeline": "interlock run job -- sleep 1000 | cat; echo AFT''ER",
	} {
		t.Run(name, func(t *testing.T) {
			p := sit(t, "bash", "-c", script)
			p.seesHeld(t, "job")
			p.Press(t, guardtest.CtrlC)
			if got := p.Ends(t); got != 130 || strings.Contains(p.Shown(), "AFTER") {
				t.Errorf("exit status %d, want 130; the screen shows %q", got, p.Shown())
			}
		})
	}
}

// Ctrl-C ends the wait as well. A notice at the terminal says who holds, after a second.
func TestTerminal_CtrlCWhileWaiting(t *testing.T) {
	p := sitInShell(t)
	p.Press(t, "interlock run job --note 'the first' -- sleep 1000 &\n")
	p.seesHeld(t, "job")
	p.Press(t, "for i in 1 2; do interlock run job -- echo NEV''ER; done; echo AFT''ER\n")
	p.Shows(t, `waiting: "job" is held by interlock/`)
	p.Shows(t, "(the first) since ")
	p.Press(t, guardtest.CtrlC)
	p.Shows(t, "$ ")
	p.Press(t, "echo status $?; kill %1; wait\n")
	p.Shows(t, "status 130")
	if s := p.Shown(); strings.Contains(s, "NEVER") || strings.Contains(s, "AFTER") {
		t.Errorf("the screen shows %q", s)
	}
}

// Ctrl-Z and fg, while the command reads the terminal.
func TestTerminal_CtrlZ(t *testing.T) {
	p := sitInShell(t)
	p.Press(t, "interlock run job -- cat\n")
	p.seesHeld(t, "job")
	p.Press(t, guardtest.CtrlZ)
	p.Shows(t, "Stopped")
	p.Answers(t)
	p.Press(t, "fg\n")
	p.Shows(t, "interlock run job")
	p.Press(t, "hello\n")
	p.Shows(t, "hello")
	p.Shows(t, "hello")
	p.Press(t, guardtest.CtrlD)
	p.Shows(t, "$ ")
	p.Press(t, "echo status $?\n")
	p.Shows(t, "status 0")
}

// A command that stops itself alone, as ssh does by ~^Z, gives the shell its terminal back, and
// goes on with fg, once for each time.
func TestTerminal_CommandStopsItself(t *testing.T) {
	for _, sig := range []string{"STOP", "TSTP"} {
		t.Run(sig, func(t *testing.T) {
			p := sitInShell(t)
			p.Press(t, "interlock run job -- sh -c 'kill -"+sig+" $$; echo o''nce; kill -"+sig+" $$; echo tw''ice'\n")
			p.Shows(t, "Stopped")
			p.Answers(t)
			p.Press(t, "fg\n")
			p.Shows(t, "once")
			p.Shows(t, "Stopped")
			p.Answers(t)
			p.Press(t, "fg; echo status $?\n")
			p.Shows(t, "twice")
			p.Shows(t, "status 0")
		})
	}
}

// A SIGCONT to such a command alone continues the whole job.
func TestTerminal_CommandIsContinued(t *testing.T) {
	p := sitInShell(t)
	file := filepath.Join(t.TempDir(), "pid")
	p.Press(t, "interlock run job -- sh -c 'echo $$ >"+file+"; kill -STOP $$; echo goes o''n'\n")
	p.Shows(t, "Stopped")
	p.Answers(t)
	p.Press(t, "kill -CONT $(cat "+file+"); until jobs | grep Done; do sleep 0.01; done\n") // bash's wait is over, with 148, where it has not heard yet
	p.Shows(t, "goes on")
	p.Shows(t, "Done")
}

// Ctrl-Z while waiting stops the wait, which goes on with fg.
func TestTerminal_CtrlZWhileWaiting(t *testing.T) {
	p := sitInShell(t)
	p.Press(t, "interlock run job -- sleep 1000 &\n")
	p.seesHeld(t, "job")
	p.Press(t, "interlock run job -- echo it''s my turn\n")
	p.Shows(t, "waiting: ")
	p.Press(t, guardtest.CtrlZ)
	p.Shows(t, "Stopped")
	p.Answers(t)
	p.Press(t, "kill %1; fg %2\n")
	p.Shows(t, "its my turn")
}

// Ctrl-Z for longer than the lease: the command is ended, others get the lock, and fg shows the
// loss.
func TestTerminal_CtrlZTooLong(t *testing.T) {
	p := sitInShell(t)
	p.Press(t, "interlock run --ttl 1s job -- sh -c 'echo u''p; exec sleep 1000'\n")
	p.Shows(t, "up\n")
	p.Press(t, guardtest.CtrlZ)
	p.Shows(t, "Stopped")
	p.Answers(t)
	p.Press(t, "interlock run job -- echo oth''ers\n")
	p.Shows(t, "others")
	p.Press(t, "fg; echo status $?\n")
	p.Shows(t, `lost "job"`)
	p.Shows(t, "status 76")
}

// A pipeline ends when its parts do, and its data go through.
func TestTerminal_Pipeline(t *testing.T) {
	p := sitInShell(t)
	p.Press(t, "seq 3 | interlock run a -- tac | interlock run b -- tr '\\n' '-'; echo status ${PIPESTATUS[*]}\n")
	p.Shows(t, "3-2-1-status 0 0 0")
}

// In the background, reading the terminal stops the job as it does any other.
func TestTerminal_Background(t *testing.T) {
	p := sitInShell(t)
	p.Press(t, "interlock run job -- cat &\n")
	p.seesHeld(t, "job")
	p.Press(t, "until jobs | grep Stopped; do sleep 0.01; done\n") // typed once: what is typed ahead would go to cat
	p.Shows(t, "interlock run job -- cat\n$ ")
	p.Press(t, "fg\n")
	p.Shows(t, "interlock run job -- cat\n")
	p.Press(t, "hello\n")
	p.Shows(t, "hello\nhello\n")
	p.Press(t, guardtest.CtrlD)
	p.Shows(t, "$ ")
	p.Press(t, "echo status $?\n")
	p.Shows(t, "status 0")
}

// Colours are for terminals.
func TestTerminal_Colours(t *testing.T) {
	p := sitInShell(t)
	p.Press(t, "interlock run job -- env TERM=xterm interlock ls\n")
	p.Shows(t, "\x1b[32mholds\x1b[0m")
	p.Press(t, "interlock run job -- env TERM=xterm interlock ls | cat\n")
	p.Shows(t, " holds ")
}

// A list is as wide as the terminal, where that is wider than 80 columns, and cut to 80 in a pipe.
func TestTerminal_Width(t *testing.T) {
	p := sitInShell(t)
	name := "shop/" + strings.Repeat("0123456789", 6) + "/orders"
	p.Press(t, "stty cols 160; interlock run "+name+" -- interlock ls; echo e''nd\n")
	p.Shows(t, name+"  ")
	p.Shows(t, "end")
	p.Press(t, "interlock run "+name+" -- interlock ls | cat; echo e''nd\n")
	p.Shows(t, "shop/0123")
	p.Shows(t, "…")
	p.Shows(t, "/orders  ")
	p.Shows(t, "end")
	p.Press(t, "stty cols 40; interlock run "+name+" -- interlock ls -o wide; echo e''nd\n")
	p.Shows(t, " NOTE\n")
	p.Shows(t, name+"  ")
}

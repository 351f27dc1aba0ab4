// Package guard runs a command that must be over before a deadline, whatever happens to the process
// that started it.
//
// It knows nothing of locks: it is given deadlines, descriptors and a command. Three processes take
// part:
//
//	interlock ── socketpair ── guard ── child ── grandchildren, daemons …
//
// interlock is the process that calls [Start]. The guard is the same program executed again, which
// goes no further than the initialization of this package. The child is the command.
//
//   - Down the socketpair go the command, the deadlines and the signals, as messages in their
//     order; up go the start, the end and the exit status. Its end means that the other is dead.
//   - The guard is alone in a process group, so what stops or ends interlock's group leaves it
//     running. It is the child's parent and a child subreaper: every descendant of the child,
//     daemons too, stays below it.
//   - At Deadline.Term the guard sends SIGTERM to the child and then to everything below itself, at
//     Deadline.Kill SIGKILL, again and again until wait4 says that nothing is left. It uses its own
//     timer on a clock that counts suspension, so it does so too while interlock is stopped.
//   - interlock dies: the socketpair ends, and the guard kills the tree at once.
//   - The guard dies: the child is killed by the kernel (PDEATHSIG), and interlock, a second
//     subreaper, inherits the rest and kills it at once.
//   - The guard is stopped: interlock kills it between Deadline.Kill and Deadline.End, and the line
//     above follows. When interlock dies then, the kernel continues the guard, whose process group
//     has become an orphan, and it kills the tree.
//
// A freeze of everything (a container, a virtual machine, SIGSTOP to all three) past the deadline
// lets the child run on for a fraction of a millisecond after the thaw. Nothing outside the kernel
// can prevent that: fencing tokens are for it.
//
// # Job control
//
// Where there is a controlling terminal the child stays in interlock's process group, as it would
// below env, nice or flock: Ctrl-C and Ctrl-Z reach it, interlock and the script around them at the
// same moment, and reading the terminal works. INT, QUIT, TSTP and WINCH are then not passed on,
// for they have already arrived. Without a terminal (cron, systemd, CI) the child gets a group of
// its own, to which HUP, INT, QUIT, TERM, USR1, USR2, TSTP and CONT are passed on; TTIN, TTOU,
// WINCH, ALRM, VTALRM, IO and PWR go to the child alone. Not passed on are real-time signals, whose
// values would be lost, and those that tell interlock of what it does itself, as URG, PROF, CHLD
// and XCPU.
//
// A command that stops itself alone, as ssh does by ~^Z, stops interlock as well where there is a
// terminal, a moment later: so the shell has it back, and fg continues both. To continue the
// command alone continues interlock, too.
//
// What a shell sends to the whole job (`kill %1`, SIGHUP at its end) has arrived, too, but cannot
// be told from what was sent to interlock alone, and is passed on: such a child gets SIGTERM or
// SIGHUP twice.
//
// Signals go to the guard as messages. It sends them when the child exists, so one that comes
// between the fork and the report of the fork is not lost, and none can hit a process that took
// over the number of a dead one.
//
// What was ignored when interlock started stays ignored in the child, so nohup works. The Go
// runtime keeps that for HUP, INT, TSTP, TTIN and TTOU only; other signals that were ignored are
// back at their default in the child.
//
// # What is not covered
//
// If somebody stops interlock and the guard by hand, and not the child, the child runs on. To kill
// both at the same moment ends the child, but daemons that it started get away; the
// descriptors of Command.Inherit tell the store that they live, and interlock run the next one who
// comes.
//
// The kernel clears PDEATHSIG when a setuid program is executed, and nobody but root may kill
// root's processes: `sudo` belongs outside. systemd's default stop sends SIGTERM to every process
// of the unit: the guard survives it, but the child gets it twice (KillMode=mixed sends it to
// interlock alone). On macOS there is neither PDEATHSIG nor a subreaper: the guard kills what it
// finds below the child and in the child's group, but daemons whose parent has ended escape it, and
// so does the tree when interlock and the guard are killed together. On other systems every call
// answers [errors.ErrUnsupported].
package guard

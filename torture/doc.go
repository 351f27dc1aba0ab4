// Package torture shows what a store's locks are worth: worker processes that all want the same
// names, while they are killed, stopped and cut off, and checks over what happened, on one clock.
//
//	func main() {
//		torture.Main() // first: this program is executed again as its workers
//		report, err := torture.Run(ctx, torture.Config{Store: "file:/tmp/locks", For: 20 * time.Second}, os.Stdout)
//		…
//		report.Print(os.Stdout)
//	}
//
// # What is checked
//
//	V1  tokens of a name are unique and grow in the order of grants
//	V2  no acknowledged fenced update is lost, and accepted tokens never fall
//	V3  there is no instant at which two leases of a name say that they are valid
//	V4  who loses a lease is told at or before the moment at which the next gets in
//	V6  after the faults every name can be had within TTL + 2 s, and nothing is left behind
//	V7  what was closed is gone: goroutines, descriptors, and what servers keep
//	V8  a name that is free and wanted is granted soon (of some flawed locks)
//
// # Twins
//
// A run in which nothing goes wrong shows nothing unless something could have. So every run has
// twins: negative controls that lack one thing each, the lock, the fence, or the grace and the
// right end of time. Each must fail a check, in the same faults; if it does not, the run does not
// count.
//
// # Servers and flaws
//
// Run starts servers by itself where Config.Start says so, and harms them: see [FaultLink] and the
// others. What a fault may cost on which servers is one table, and the report names it. With
// Config.Flawed it runs the locks of package torture/flawed, each wrong in one place, until they
// are convicted, and a correct one beside them.
//
// # How it works
//
// Run, the conductor, executes its own binary again for every worker (package internal/worker). A
// worker logs into a file that it alone writes and that it maps into memory, so what it wrote
// before a kill -9 is there after it. All times are CLOCK_MONOTONIC, which the processes of a
// machine share. Between the workers and the servers stand proxies (internal/proxies); servers that
// Run has started are harmed by internal/servers. After a round the conductor reads the logs and
// judges (internal/history). A violation is shown by its trace: what each process did when.
//
// A run is not repeatable by its seed alone, as processes run when the machine lets them; the seed
// repeats the kinds and times of the faults.
//
// Linux and macOS only; elsewhere Run answers errors.ErrUnsupported.
package torture

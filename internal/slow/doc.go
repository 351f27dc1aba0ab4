// Command slow runs another command on a machine that is as slow to wake threads as an old or crowded one:
//
//	go build -o /tmp/slow ./internal/slow && /tmp/slow go test -race ./redlock
//
// On each core three threads of this process burn the time away at normal priority, in bursts of a tenth of a millisecond
// for which they ask ahead of everybody else. Whoever wakes there has to let them go first, and gets a quarter of the core:
// what is bound by the processor takes four times as long, and a lock and its release on a Redis 250 to 350 µs instead of 60.
// `make proof` runs every package under it, to find tests that depend on the machine's speed.
//
// The threads end with this process, however that ends. It passes signals on, ends with the command and returns its status.
package main

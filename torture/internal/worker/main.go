//go:build linux || darwin

// Package worker has the worker processes of a run: what they do, how they are started, and the
// faults that they suffer. A worker logs all that happens to it; nothing of that is lost when it is
// killed.
package worker

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// IsWorker reports whether this process was started as a worker.
func IsWorker() bool { return os.Getenv(Variable) != "" }

// Main does the work and never returns in a process that was started as a worker; in every other
// process it returns at once.
func Main() {
	if !IsWorker() {
		return
	}
	in := bufio.NewReader(os.Stdin)
	if err := work(in); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func work(in *bufio.Reader) error {
	line, err := in.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("torture: read the job: %w", err)
	}
	var j Job
	if err := json.Unmarshal(line, &j); err != nil {
		return fmt.Errorf("torture: read the job: %w", err)
	}
	// The worker ends with its conductor, however that ends.
	go func() {
		_, _ = io.Copy(io.Discard, in)
		os.Exit(3)
	}()
	d, err := OpenLog(j.Log)
	if err != nil {
		return err
	}
	defer d.Pulse()()
	switch j.Task {
	case "storm":
		return storm(j, d)
	case "contest":
		if j.Tx != "" && j.Guard != Unlocked {
			return transact(j, d, (*txWorker).contend)
		}
		return contest(j, d)
	case "transactions":
		return transact(j, d, (*txWorker).add)
	}
	return fmt.Errorf("torture: no task %q", j.Task)
}

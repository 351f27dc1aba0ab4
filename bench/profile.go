package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"
)

// profileVariable names the directory in which workers leave CPU profiles.
// `go tool pprof` reads several of them at once.
const profileVariable = "INTERLOCK_BENCH_CPUPROFILE"

// startProfile begins the CPU profile of this worker, if the parent wants
// one. Workers that are killed leave none.
func startProfile(j job) (stop func() error, err error) {
	dir := os.Getenv(profileVariable)
	if dir == "" {
		return func() error { return nil }, nil
	}
	name := fmt.Sprintf("%s-%s-%d-%d.pprof", j.Task, strings.ReplaceAll(j.Adapter, " ", "-"), j.Count, os.Getpid())
	f, err := os.Create(filepath.Join(dir, name))
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, err
	}
	return func() error {
		pprof.StopCPUProfile()
		return f.Close()
	}, nil
}

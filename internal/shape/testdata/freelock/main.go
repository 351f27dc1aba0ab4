// Command freelock takes a free lock in memory, and writes into a folder which functions were called for that and how often.
package main

import (
	"context"
	"log"
	"os"
	"runtime/coverage"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/memlock"
)

func main() {
	client, err := interlock.New(memlock.New(), nil)
	must(err)
	m := client.Mutex("a")
	first, err := m.Lock(context.Background()) // opens the session
	must(err)
	must(first.Release())
	must(coverage.ClearCounters())
	lease, err := m.Lock(context.Background())
	must(err)
	must(coverage.WriteMetaDir(os.Args[1]))
	must(coverage.WriteCountersDir(os.Args[1]))
	must(lease.Release())
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

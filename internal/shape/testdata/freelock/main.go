// Command freelock takes a hundred free locks in memory, and writes into a folder which functions were called for that and how often.
package main

import (
	"context"
	"log"
	"os"
	"runtime/coverage"
	"strconv"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/memlock"
)

func main() {
	client, err := interlock.New(memlock.New(), nil)
	must(err)
	first, err := client.Mutex("first").Lock(context.Background()) // opens the session
	must(err)
	must(coverage.ClearCounters())
	for i := range 100 {
		_, err := client.Mutex(strconv.Itoa(i)).Lock(context.Background())
		must(err)
	}
	must(coverage.WriteMetaDir(os.Args[1]))
	must(coverage.WriteCountersDir(os.Args[1]))
	must(first.Release())
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

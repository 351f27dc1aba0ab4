package servertest_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/internal/servertest"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("SERVERTEST_DIE"); dir != "" {
		startAndHang(dir)
	}
	goleak.VerifyTestMain(m)
}

// startAndHang is what the process does that TestServersDieWithTheirStarter kills. First it ends
// every thread that it can: a server must not end with any of them.
func startAndHang(dir string) {
	var pids []string
	for i := range 2 {
		s, err := servertest.Start(context.Background(), servertest.Options{Dir: dir})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		pids = append(pids, strconv.Itoa(s.Pid()))
		var threads sync.WaitGroup
		for range 100 {
			threads.Go(runtime.LockOSThread) // a goroutine that ends locked takes its thread along
		}
		threads.Wait()
		if i == 1 {
			_ = s.Pause()
		}
	}
	fmt.Println(strings.Join(pids, " "))
	select {}
}

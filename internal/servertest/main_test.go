package servertest_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
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

// startAndHang is what the process does that TestServersDieWithTheirStarter kills.
func startAndHang(dir string) {
	var pids []string
	for range 2 {
		// On a thread that ends with its goroutine: the server must not end with it.
		started := make(chan *servertest.Server)
		go func() {
			runtime.LockOSThread()
			s, err := servertest.Start(context.Background(), servertest.Options{Dir: dir})
			if err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
			started <- s
		}()
		s := <-started
		pids = append(pids, strconv.Itoa(s.Pid()))
		if len(pids) == 2 {
			_ = s.Pause()
		}
	}
	fmt.Println(strings.Join(pids, " "))
	select {}
}

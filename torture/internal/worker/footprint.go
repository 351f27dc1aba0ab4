//go:build linux || darwin

package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/interlock-go/interlock/internal/workers/monotonic"
	"github.com/interlock-go/interlock/torture/internal/history"
)

// What a worker has when it has closed everything, compared with before: the half of V7 that is
// about workers.

// tracesNow counts. What the runtime opens for the network when it is first used is open already.
func tracesNow() history.Footprint {
	return history.Footprint{Goroutines: int64(runtime.NumGoroutine()), Descriptors: int64(len(descriptors()))}
}

// descriptors says what each open descriptor of this process is, as far as the system tells.
func descriptors() (all []string) {
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		to, err := os.Readlink(filepath.Join("/dev/fd", e.Name()))
		// the one by which the folder was read is gone
		if err == nil || !errors.Is(err, os.ErrNotExist) {
			all = append(all, e.Name()+" "+to)
		}
	}
	return all
}

// TidyIn is how long a process that runs may take until everything that it has closed has ended.
const TidyIn = 15 * time.Second

// before counts what a worker has before it opens the store.
func before() history.Footprint {
	if l, err := net.Listen("tcp", "127.0.0.1:0"); err == nil {
		_ = l.Close()
	}
	return tracesNow()
}

// logFootprint logs what a worker has that closed everything, when that is no more than before or
// does not become less. What it is goes into the file at path.
func logFootprint(d *Log, was history.Footprint, path string) {
	ctx, cancel := monotonic.Running(context.Background(), TidyIn)
	own := history.Footprint{Goroutines: 1} // what counts the time
	left := tracesNow()
	for ; ctx.Err() == nil; left = tracesNow() {
		if left.Goroutines -= own.Goroutines; !left.Beyond(was) {
			break
		}
		monotonic.Pause(5*time.Millisecond, ctx.Done())
	}
	starved := errors.Is(context.Cause(ctx), monotonic.ErrStarved)
	cancel()
	if starved {
		return
	}
	if left.Beyond(was) {
		var b bytes.Buffer
		fmt.Fprintf(&b, "%s\n", strings.Join(descriptors(), "\n"))
		_ = pprof.Lookup("goroutine").WriteTo(&b, 1)
		_ = os.WriteFile(path, b.Bytes(), 0o600)
	}
	for i, n := range []int64{was.Goroutines, was.Descriptors, left.Goroutines, left.Descriptors} {
		d.head.prints[i].Store(n)
	}
}

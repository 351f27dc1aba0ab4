//go:build linux || darwin

package worker

import (
	"strings"
	"testing"
)

func TestOwnStacks(t *testing.T) {
	got := ownStacks(`SIGQUIT: quit

goroutine 1 [sync.WaitGroup.Wait]:
sync.(*WaitGroup).Wait(0x1b47)
	/usr/local/go/src/sync/waitgroup.go:206 +0x85
github.com/interlock-go/interlock/filelock.(*Driver).Close(0x1b47, {0x6f08b8, 0x1b})
	/src/filelock/driver.go:136 +0x46a fp=0x1 sp=0x2

goroutine 2 [select]:
github.com/interlock-go/interlock/torture.(*diary).beat(0x1)
	/src/torture/diary.go:124 +0xd1

goroutine 3 [select]:
github.com/interlock-go/interlock/torture.(*diary).beat(0x2)
	/src/torture/diary.go:124 +0xd1

goroutine 4 [GC worker]:
runtime.gopark(0x0)
	/usr/local/go/src/runtime/proc.go:462`)
	want := `goroutine 1 [sync.WaitGroup.Wait]:
  filelock.(*Driver).Close /src/filelock/driver.go:136
goroutine 2 [select]:
  torture.(*diary).beat /src/torture/diary.go:124`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestTranscriptIsBounded(t *testing.T) {
	var tr output
	line := []byte(strings.Repeat("x", 1000))
	for range 2 * maxOutput / len(line) {
		if n, err := tr.Write(line); n != len(line) || err != nil {
			t.Fatalf("Write says %d, %v: a worker would die of that", n, err)
		}
	}
	if n := len(tr.String()); n != maxOutput {
		t.Errorf("it keeps %d bytes, want %d", n, maxOutput)
	}
}

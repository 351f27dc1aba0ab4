package stage_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/examples/coupons/shop"
	"github.com/interlock-go/interlock/examples/coupons/stage"
	_ "github.com/interlock-go/interlock/filelock"
)

// The test binary is also the shops' program.
const shopVariable = "COUPONS_TEST_SHOP"

func TestMain(m *testing.M) {
	if os.Getenv(shopVariable) == "" {
		os.Exit(m.Run())
	}
	if err := stage.RunShop(context.Background(), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func command() *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), shopVariable+"=1", "GORACE=atexit_sleep_ms=0")
	return cmd
}

func TestPlay(t *testing.T) {
	r, err := stage.Run(t.Context(), stage.Config{
		Servers: 3, Coupons: 24, TTL: time.Second, Command: command, Progress: func(line string) { t.Log(line) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Err(); err != nil {
		t.Error(err)
	}
	if len(r.Acts) != 4 {
		t.Fatalf("%d acts, want 4", len(r.Acts))
	}
	for i, guard := range []shop.Guard{shop.None, shop.Lock, shop.Lock, shop.Fence} {
		a := r.Acts[i]
		t.Log(a.Story())
		if a.Guard != guard || a.Stock != 24 {
			t.Errorf("act %d: guard %s, stock %d", a.Number, a.Guard, a.Stock)
		}
		if right := i%2 == 1; right != (a.Account == shop.Account{Stock: 24, Sold: 24}) || right != (a.Oversold == 0) {
			t.Errorf("act %d: %+v, oversold %d", a.Number, a.Account, a.Oversold)
		}
		if (a.Stop != nil) != (i >= 2) {
			t.Fatalf("act %d: stop %v", a.Number, a.Stop)
		}
	}
	for _, a := range r.Acts[2:] {
		s := a.Stop
		// The lease was not over before most of its time was; what a renewal had left of it is not known here.
		if s.Shop != "shop 1" || s.By == "" || s.By == s.Shop || s.Token == 0 || s.Overtaken-s.Stopped < stage.Seconds(500*time.Millisecond) ||
			s.Continued < s.Overtaken || s.Ended < s.Continued || s.Meanwhile != s.Number {
			t.Errorf("act %d: %+v", a.Number, s)
		}
	}
	if late := r.Acts[2].Stop; !late.Written || late.Status != 500 || !strings.Contains(late.Answer, "lost") {
		t.Errorf("the late write under the lock: %+v", late)
	}
	if late := r.Acts[3].Stop; late.Written || late.Status != 503 || !strings.Contains(late.Answer, "is stale") {
		t.Errorf("the late write with a token: %+v", late)
	}
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
}

func TestRunRefusesWhatCannotBe(t *testing.T) {
	for want, c := range map[string]stage.Config{
		"1 servers: want 2":                    {Servers: 1},
		"7 coupons: want 8":                    {Coupons: 7},
		"19 buyers of 10 coupons: want twice":  {Coupons: 10, Buyers: 19},
		"TTL of 1ms: want 200ms to 1m":         {TTL: time.Millisecond},
		"want Config.Command":                  {},
		"shop 1 ended":                         {Command: func() *exec.Cmd { return exec.Command("false") }},
		"start shop 1":                         {Command: func() *exec.Cmd { return exec.Command("/no/such/program") }},
		`unknown scheme "nosuch"`:              {Store: "nosuch:", Command: command},
		"want one that they share":             {Store: "mem:shared"},
		"act 1, no lock: stage: shop 1 ended:": {Command: func() *exec.Cmd { return exec.Command("true") }},
	} {
		if c.Command == nil && want != "want Config.Command" {
			c.Command = command
		}
		_, err := stage.Run(t.Context(), c)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, err := stage.Run(ctx, stage.Config{Coupons: 8, Command: command, Progress: func(line string) {
		if strings.Contains(line, "is stopped") {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}

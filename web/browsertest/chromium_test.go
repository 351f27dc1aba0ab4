package browsertest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
)

// chromium is the one browser of all tests. Each page is in a profile of its own.
type chromium struct {
	ctx context.Context // what chromedp calls a context is the browser
	end func()

	mu    sync.Mutex
	wrong []string // what it said that nobody could read
}

// browser starts the browser when it is first asked for.
var browser = sync.OnceValues(func() (*chromium, error) {
	program, err := exec.LookPath("chromium")
	if err != nil {
		return nil, fmt.Errorf("%w: install the Debian package chromium", err)
	}
	dir, err := os.MkdirTemp("", "interlock-browser-*")
	if err != nil {
		return nil, err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program),
		chromedp.UserDataDir(filepath.Join(dir, "profile")),
		chromedp.Env("TMPDIR="+dir),
		chromedp.WSURLReadTimeout(patience), // until it has started
		chromedp.NoSandbox,                  // which does not start for root
		chromedp.Flag("lang", "en-GB"),
	)
	c := &chromium{}
	alive, endProcess := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, endBrowser := chromedp.NewContext(alive, chromedp.WithErrorf(c.misread))
	c.ctx, c.end = ctx, func() {
		bounded, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		_ = chromedp.Cancel(bounded) // not a kill, after which its files would stay
		endBrowser()
		endProcess()
		_ = os.RemoveAll(dir)
	}
	if err := chromedp.Run(ctx); err != nil {
		c.end()
		return nil, fmt.Errorf("chromium did not start: %w", err)
	}
	running = c
	return c, nil
})

// running is the browser, if it was asked for.
var running *chromium

// misread notes an event that chromedp could not read: a fault may be in it.
func (c *chromium) misread(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wrong = append(c.wrong, fmt.Sprintf(format, args...))
}

func TestMain(m *testing.M) {
	status := m.Run()
	if c := running; c != nil {
		c.end()
		c.mu.Lock()
		for _, w := range c.wrong {
			fmt.Println("the browser said what could not be read:", w)
			status = max(status, 1)
		}
	}
	os.Exit(status)
}

package browsertest

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	pagedomain "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/interlock-go/interlock/internal/npm"
)

var (
	//go:embed axe/package.json
	axePackage []byte
	//go:embed axe/package-lock.json
	axeLock []byte
)

// axeScript is axe-core, which npm brings once for all runs of this user.
var axeScript = sync.OnceValues(func() (string, error) {
	user, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no folder for the packages of npm: %w", err)
	}
	cache := filepath.Join(user, "interlock-browser")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	modules, err := npm.Install(cache, axePackage, axeLock)
	if err != nil {
		return "", err
	}
	script, err := os.ReadFile(filepath.Join(modules, "axe-core", "axe.min.js"))
	return string(script), err
})

// barrier is what axe-core finds.
type barrier struct {
	ID     string `json:"id"`
	Impact string `json:"impact"`
	Help   string `json:"help"`
	Nodes  []struct {
		HTML           string `json:"html"`
		FailureSummary string `json:"failureSummary"`
	} `json:"nodes"`
}

// String says what it is, and where first.
func (b barrier) String() string {
	s := fmt.Sprintf("axe: %s: %s: %s, %d times", b.Impact, b.ID, b.Help, len(b.Nodes))
	for _, n := range b.Nodes[:min(len(b.Nodes), 3)] {
		s += fmt.Sprintf("\n%.300s\n%s", n.HTML, n.FailureSummary)
	}
	return s
}

// accessible tests that people who cannot see, or cannot use a mouse, can use the page as it is
// now. What axe-core calls a minor or a moderate flaw is no failure.
func (p *page) accessible() {
	p.Helper()
	for _, b := range p.barriers() {
		p.Errorf("%s", b)
	}
}

// barriers returns the serious and critical ones.
func (p *page) barriers() (found []barrier) {
	p.Helper()
	script, err := axeScript()
	if err != nil {
		p.Fatal(err)
	}
	var answer struct {
		Passes     int       `json:"passes"`
		Violations []barrier `json:"violations"`
	}
	p.run(chromedp.ActionFunc(func(ctx context.Context) error {
		tree, err := pagedomain.GetFrameTree().Do(ctx)
		if err != nil {
			return err
		}
		// In a world of its own the script sees the document, and the page's policy does not see
		// the script.
		world, err := pagedomain.CreateIsolatedWorld(tree.Frame.ID).WithWorldName("axe").Do(ctx)
		if err != nil {
			return err
		}
		in := func(script string) (*runtime.RemoteObject, error) {
			got, wrong, err := runtime.Evaluate(script).WithContextID(world).WithAwaitPromise(true).WithReturnByValue(true).Do(ctx)
			if err == nil && wrong != nil {
				err = wrong
			}
			return got, err
		}
		if _, err := in(script + ";0"); err != nil {
			return fmt.Errorf("axe-core does not load: %w", err)
		}
		const ask = `axe.run(document, {resultTypes: ["violations"]}).then((r) => JSON.stringify({passes: r.passes.length, violations: r.violations}))`
		got, err := in(ask)
		if err != nil {
			return fmt.Errorf("axe-core fails: %w", err)
		}
		var text string
		if err := json.Unmarshal(got.Value, &text); err != nil {
			return err
		}
		return json.Unmarshal([]byte(text), &answer)
	}))
	if answer.Passes < 10 {
		p.Errorf("axe-core has looked for %d things alone", answer.Passes)
	}
	for _, v := range answer.Violations {
		if strings.Contains("serious critical", v.Impact) {
			found = append(found, v)
		}
	}
	return found
}

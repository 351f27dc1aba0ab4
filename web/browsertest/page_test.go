package browsertest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	pagedomain "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// patience is how long a test waits for what must come.
const patience = time.Minute

// look is how somebody looks at a page.
type look struct {
	name          string
	width, height int64
	dark          bool
	plain         bool // without scripts
}

var (
	deskLight  = look{name: "desk, light", width: 1280, height: 800}
	deskDark   = look{name: "desk, dark", width: 1280, height: 800, dark: true}
	phoneLight = look{name: "phone, light", width: 390, height: 844}
	phoneDark  = look{name: "phone, dark", width: 390, height: 844, dark: true}
	looks      = []look{deskLight, deskDark, phoneLight, phoneDark}
)

// page is a tab of the browser, in which somebody looks at the pages of one server.
type page struct {
	*testing.T
	ctx  context.Context // what chromedp calls a context is the tab
	base *url.URL

	mu     sync.Mutex
	faults []string
	status int64             // of the newest document
	loads  int               // how many documents there were
	allow  map[string]string // by path: a part of the text of an error that is expected
}

// open opens a tab for the pages of a server, which is at base. What was wrong in it the test has
// failed by when it ends.
func open(t *testing.T, base string, l look) *page {
	t.Helper()
	p := opened(t, base, l)
	t.Cleanup(func() {
		for _, f := range p.seen() {
			t.Error(f)
		}
	})
	return p
}

// opened is open of pages that are known to have faults.
func opened(t *testing.T, base string, l look) *page {
	t.Helper()
	c, err := browser()
	if err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	// A window and a profile of its own: chromedp.WithNewBrowserContext would have the tab in a
	// window of that profile, which there is not.
	all := cdp.WithExecutor(c.ctx, chromedp.FromContext(c.ctx).Browser)
	profile, err := target.CreateBrowserContext().Do(all)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = target.DisposeBrowserContext(profile).Do(all) })
	tab, err := target.CreateTarget("about:blank").WithBrowserContextID(profile).WithNewWindow(true).Do(all)
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := chromedp.NewContext(c.ctx, chromedp.WithTargetID(tab))
	t.Cleanup(end)
	p := &page{T: t, ctx: ctx, base: at, allow: map[string]string{}}
	chromedp.ListenTarget(ctx, p.hears)
	if err := chromedp.Run(ctx); err != nil { // which attaches to it until ctx ends
		t.Fatal(err)
	}
	scheme := "light"
	if l.dark {
		scheme = "dark"
	}
	p.run(
		audits.Enable(),
		emulation.SetDeviceMetricsOverride(l.width, l.height, 1, l.width < 600),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
		emulation.SetFocusEmulationEnabled(true), // several tabs are looked at at the same time
		emulation.SetScriptExecutionDisabled(l.plain),
	)
	return p
}

// hears is told of all that happens in the tab.
func (p *page) hears(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		p.fault("script error: %v", e.ExceptionDetails)
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.APITypeError || e.Type == runtime.APITypeAssert || e.Type == runtime.APITypeWarning {
			var words []string
			for _, a := range e.Args {
				words = append(words, string(a.Value))
			}
			p.fault("console %s: %s", e.Type, strings.Join(words, " "))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.LevelError && !p.allowed(e.Entry) {
			p.fault("console error: %s: %s (%s)", e.Entry.Source, e.Entry.Text, e.Entry.URL)
		}
	case *audits.EventIssueAdded:
		if e.Issue.Code == audits.InspectorIssueCodeContentSecurityPolicyIssue {
			details, _ := json.Marshal(e.Issue.Details.ContentSecurityPolicyIssueDetails)
			p.fault("policy: %s", details)
		}
	case *network.EventRequestWillBeSent:
		if to, err := url.Parse(e.Request.URL); err != nil || to.Host != p.base.Host {
			p.fault("request to another host: %s", e.Request.URL)
		}
	case *network.EventWebSocketCreated:
		p.fault("request by another way: %s", e.URL)
	case *network.EventResponseReceived:
		if e.Type == network.ResourceTypeDocument {
			p.status = e.Response.Status
		}
	case *pagedomain.EventFrameNavigated:
		if e.Frame.ParentID == "" {
			p.loads++
		}
	}
}

// fault notes what is wrong. Called under p.mu.
func (p *page) fault(format string, args ...any) {
	p.faults = append(p.faults, fmt.Sprintf(format, args...))
}

// allowed reports whether an error is one that the test means to see. Called under p.mu.
func (p *page) allowed(e *log.Entry) bool {
	at, err := url.Parse(e.URL)
	words, expected := p.allow[at.Path]
	return err == nil && e.Source == log.SourceNetwork && expected && strings.Contains(e.Text, words)
}

// expect has errors pass for which the test is to blame: that what is at a path is answered in such
// a way.
func (p *page) expect(path, words string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.allow[path] = words
}

// seen returns what was wrong so far.
func (p *page) seen() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.faults)
}

// run does something in the tab.
func (p *page) run(do ...chromedp.Action) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Run(ctx, do...); err != nil {
		p.Fatal(err)
	}
}

// visit goes to a page as by its address, and sees how it is answered.
func (p *page) visit(path string, status int64) {
	p.Helper()
	at, err := p.base.Parse(path)
	if err != nil {
		p.Fatal(err)
	}
	if status >= 400 {
		p.expect(at.Path, fmt.Sprintf("status of %d", status))
	}
	p.run(chromedp.Navigate(at.String()))
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.status != status {
		p.Fatalf("%s is answered by %d, want %d", path, p.status, status)
	}
}

// loaded returns how many documents there were in the tab.
func (p *page) loaded() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.loads
}

// stays returns a function which fails the test if another document was loaded since.
func (p *page) stays() (still func()) {
	n := p.loaded()
	return func() {
		p.Helper()
		if now := p.loaded(); now != n {
			p.Errorf("the page was loaded anew %d times", now-n)
		}
	}
}

// tells returns what an expression of JavaScript is, by which a test asks and changes nothing. It
// fails while there is no document, as between two pages.
func (p *page) tells(expression string, v any) error {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate(expression, v))
}

// until waits until an expression is true.
func (p *page) until(what, expression string) {
	p.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); ; <-tick.C {
		var is bool
		err := p.tells(expression, &is)
		if err == nil && is {
			return
		}
		if time.Now().After(end) {
			var text string
			_ = p.tells(`location.href + "\n" + document.body.innerText`, &text)
			p.Fatalf("not after %v: %s (%v); the page is\n%s", patience, what, err, text)
		}
	}
}

// sees waits until what is shown has all of these words.
func (p *page) sees(words ...string) {
	p.Helper()
	for _, w := range words {
		p.until(fmt.Sprintf("%q is shown", w), fmt.Sprintf(`document.readyState === "complete" && document.body.innerText.includes(%s)`, quoted(w)))
	}
}

// misses waits until what is shown has none of these words.
func (p *page) misses(words ...string) {
	p.Helper()
	for _, w := range words {
		p.until(fmt.Sprintf("%q is shown no more", w), fmt.Sprintf(`document.readyState === "complete" && !document.body.innerText.includes(%s)`, quoted(w)))
	}
}

// login sends the form of the login, when the keys go to its field.
func (p *page) login(token string) {
	p.Helper()
	p.sees("Your token")
	p.until("the keys go to the field", focused("#token", ""))
	p.press(token, kb.Enter)
}

// quoted is a text as JavaScript has it.
func quoted(s string) string {
	b, _ := json.Marshal(s) // which it does with every string
	return string(b)
}

// press presses the keys of these texts, one after another. As from a keyboard a key comes with
// what it types, which a script can refuse: chromedp.KeyEvent sends it as an event of its own.
func (p *page) press(texts ...string) {
	p.Helper()
	var all []chromedp.Action
	for _, r := range strings.Join(texts, "") {
		events := kb.Encode(r)
		down, up := events[0], events[len(events)-1]
		if len(events) > 2 {
			down.Text, down.UnmodifiedText = events[1].Text, events[1].UnmodifiedText
		}
		all = append(all, down, up)
	}
	p.run(all...)
}

// focused reports whether the keys go to an element of that selector, which has those words.
func focused(selector, words string) string {
	return fmt.Sprintf(`!!document.activeElement?.matches(%s) && (document.activeElement.innerText ?? "").includes(%s)`, quoted(selector), quoted(words))
}

// tab presses the tab key until the keys go to such an element.
func (p *page) tab(selector, words string) {
	p.Helper()
	for range 60 {
		p.press(kb.Tab)
		var is bool
		if err := p.tells(focused(selector, words), &is); err != nil {
			p.Fatal(err)
		}
		if is {
			p.marked()
			return
		}
	}
	p.Fatalf("60 times the tab key do not lead to %s with %q", selector, words)
}

// marked sees that one can see where the keys go.
func (p *page) marked() {
	p.Helper()
	var width string
	if err := p.tells(`getComputedStyle(document.activeElement).outlineStyle + " " + getComputedStyle(document.activeElement).outlineWidth`, &width); err != nil {
		p.Fatal(err)
	}
	if strings.HasPrefix(width, "none") || strings.HasSuffix(width, " 0px") {
		p.Errorf("nothing shows where the keys go: outline %s", width)
	}
}

// click clicks on the first element of a selector, as a hand does.
func (p *page) click(selector string) {
	p.Helper()
	p.run(chromedp.Click(selector, chromedp.ByQuery))
}

// fits sees that nothing has to be scrolled sideways.
func (p *page) fits() {
	p.Helper()
	var over int
	if err := p.tells(`document.documentElement.scrollWidth - document.documentElement.clientWidth`, &over); err != nil {
		p.Fatal(err)
	}
	if over > 0 {
		p.Errorf("the page is %d pixels wider than the window", over)
	}
}

package web_test

import (
	"net/http"
	"testing"

	"github.com/interlock-go/interlock/memlock"
	"github.com/interlock-go/interlock/web"
)

// The link to the content of a page is one to this page, however it was asked for: to a browser
// another address is another page, which it loads.
func TestLinkToTheContentStaysOnThePage(t *testing.T) {
	h := handler(t, memlock.New(), web.Options{Prefix: "/locks"})
	for path, link := range map[string]string{
		"/locks/":                       `href="./#main"`,
		"/locks/?store=main&prefix=":    `href="./?store=main&amp;prefix=#main"`,
		"/locks/?prefix=a%2fb+c&after=": `href="./?prefix=a%2fb&#43;c&amp;after=#main"`,
		"/locks/line?store=main&name=a": `href="./line?store=main&amp;name=a#main"`,
		`/locks/line?name="><script>"`:  `href="./line?name=%22%3e%3cscript%3e%22#main"`,
		"/contention?store=main":        `href="./contention?store=main#main"`, // no prefix
		"/locks/stores":                 `href="./stores#main"`,
	} {
		has(t, body(t, get(t, h, path), http.StatusOK), link)
	}
}

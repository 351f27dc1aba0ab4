package web

import (
	"net/url"

	"github.com/interlock-go/interlock/web/internal/hub"
)

// frame is what is around every page.
type frame struct {
	Title                string
	Base                 string // what links are relative to
	Here                 string // this page, as it was asked for
	Live                 string // the page's stream, if it has one
	Soon                 bool   // it asks for itself again, where no script does
	Icon, Styles, Script string
	Tabs, Stores         []tab
	Store                *hub.Hub // that the page is about, nil if about all
	Who                  string
	Breaks               bool
}

// tab is a link in the head of a page.
type tab struct {
	Text, Href string
	Here       bool
}

// within makes the frame that of a page about a store, one of all; the page is at a path.
func (f *frame) within(all []*hub.Hub, b *hub.Hub, path string) {
	f.Store = b
	for _, other := range all {
		f.Stores = append(f.Stores, tab{other.Name, address(path, "store", other.Name), other == b})
	}
	f.tabs(b.Name, path)
}

// tabs adds links to the pages that there are.
func (f *frame) tabs(store, path string) {
	f.Tabs = []tab{
		{"Names", address("./", "store", store), path == "./"},
		{"Contention", address("contention", "store", store), path == "contention"},
		{"Stores", "stores", path == "stores"},
	}
}

// address returns the address of a page with parameters, in pairs of name and value. Those without
// a value are left out.
func address(path string, params ...string) string {
	v := url.Values{}
	for i := 0; i+1 < len(params); i += 2 {
		if params[i+1] != "" {
			v.Set(params[i], params[i+1])
		}
	}
	return path + "?" + v.Encode()
}

// problemView is the page of a problem.
type problemView struct {
	frame
	Problem  *problem
	LineHref string
}

package web

import (
	"bytes"
	"net/http"
	"time"

	"github.com/interlock-go/interlock/web/internal/hub"
)

// live answers by the stream of a page: the part of it that changes, whenever it does. The page's
// script replaces what it shows by that.
func live(s *site, w http.ResponseWriter, r *http.Request, who Principal) error {
	p, err := paramsOf(r, true, "store", "page", "prefix", "after", "name", "all")
	if err != nil {
		return err
	}
	b, err := s.store(p, false)
	if err != nil {
		return err
	}
	page, err := p.oneOf("page", "list", "line", "contention")
	if err != nil {
		return err
	}
	switch page {
	case "line":
		return liveLine(s, w, r, who, b, p)
	case "contention":
		return liveList(s, w, r, who, b, func(who Principal, s hub.State) (string, any, uint64, error) {
			v := &contentionView{}
			sum, err := v.fill(b, who, s.List, s.Failure)
			return "contention-live", v, sum, err
		})
	}
	if _, err := selectionOf(p, who); err != nil {
		return err
	}
	return liveList(s, w, r, who, b, func(who Principal, s hub.State) (string, any, uint64, error) {
		sel, _ := selectionOf(p, who) // it was looked at above
		v := &listView{listFrame: listFrame{frame: frame{Store: b}}}
		v.Here = address("./", "store", b.Name, "prefix", sel.prefix, "after", sel.after)
		sum, err := v.fill(b, sel, s.List, s.Failure)
		return "list-live", v, sum, err
	})
}

// liveList answers by the stream of a page that is made of the list. A view that render returns is
// sent if its sum is another than the last.
func liveList(
	s *site, w http.ResponseWriter, r *http.Request, who Principal, b *hub.Hub,
	render func(Principal, hub.State) (name string, view any, sum uint64, err error),
) error {
	last, first := uint64(0), true
	return s.streams.serve(w, r, who, b.List.Follow, func(s hub.State, who Principal) (*message, error) {
		name, view, sum, err := render(who, s)
		if err != nil {
			return nil, err
		}
		if !first && sum == last && s.List != nil {
			return jsonMessage("same", map[string]int64{"now": time.Now().UnixMilli(), "at": s.List.At.UnixMilli()})
		}
		first, last = false, sum
		return pageMessage(name, view)
	})
}

// pageMessage returns a message with what a template makes of a view.
func pageMessage(name string, view any) (*message, error) {
	var html bytes.Buffer
	err := made().templates.ExecuteTemplate(&html, name, view)
	return &message{"page", html.Bytes()}, err
}

// liveLine answers by the stream of the page of a name.
func liveLine(s *site, w http.ResponseWriter, r *http.Request, who Principal, b *hub.Hub, p params) error {
	name, err := p.name("name")
	if err != nil {
		return err
	}
	if !who.mayRead(name) {
		return problemOf("forbidden", "%s may not read that name", who.label())
	}
	all, err := p.oneOf("all", "0", "1")
	if err != nil {
		return err
	}
	return s.streams.serve(w, r, who, func(m *hub.Mailbox) (leave func()) { return b.Names.Follow(name, m) }, func(s hub.State, who Principal) (*message, error) {
		if !who.mayRead(name) {
			return &message{"end", []byte(`{}`)}, nil
		}
		html, err := renderLine(b, name, s, who.mayBreak(name), all == "1")
		return &message{"page", html}, err
	})
}

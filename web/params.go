package web

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/interlock-go/interlock/internal/lockname"
)

// params are the parameters of a request, by name.
type params map[string]string

// paramsOf reads the parameters that a route knows. Others are a problem if strict is true; a page
// ignores them, since people come to it by other people's links.
func paramsOf(r *http.Request, strict bool, known ...string) (params, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, problemOf("bad-request", "the parameters: want ?name=value&name=value, and what means something in URLs as %%XX")
	}
	return checked(values, strict, known)
}

// checked returns the parameters that are known. One that is there twice is a problem, and an
// unknown one if strict is true.
func checked(values url.Values, strict bool, known []string) (params, error) {
	p := params{}
	for name, given := range values {
		switch {
		case !slices.Contains(known, name):
			if strict {
				return nil, problemOf("bad-request", "unknown parameter %.100q: known are %q", name, known)
			}
		case len(given) > 1:
			return nil, problemOf("bad-request", "parameter %s stands there %d times: want it once", name, len(given))
		default:
			p[name] = given[0]
		}
	}
	return p, nil
}

// name returns a lock's name.
func (p params) name(param string) (string, error) {
	if err := lockname.Check(p[param]); err != nil {
		return "", problemOf("bad-request", "%s: %.2000v", param, err)
	}
	return p[param], nil
}

// start returns a prefix of names, which may be "".
func (p params) start(param string) (string, error) {
	if p[param] == "" {
		return "", nil
	}
	return p.name(param)
}

// number returns a number within bounds, or otherwise if there is no such parameter.
func (p params) number(param string, otherwise, least, most int) (int, error) {
	if _, given := p[param]; !given {
		return otherwise, nil
	}
	n, err := strconv.Atoi(p[param])
	if err != nil || n < least || n > most {
		return 0, problemOf("bad-request", "%s %.50q: want a number from %d to %d", param, p[param], least, most)
	}
	return n, nil
}

// oneOf returns a parameter that must be one of the words; the first of them if it is not there.
func (p params) oneOf(param string, words ...string) (string, error) {
	w, given := p[param]
	switch {
	case !given:
		return words[0], nil
	case !slices.Contains(words, w):
		return "", problemOf("bad-request", "%s %.50q: want one of %q", param, w, words)
	}
	return w, nil
}

// text returns a parameter of so many bytes at most.
func (p params) text(param string, most int) (string, error) {
	if len(p[param]) > most || !utf8.ValidString(p[param]) {
		return "", problemOf("bad-request", "%s of %d bytes: want UTF-8 of at most %d", param, len(p[param]), most)
	}
	return p[param], nil
}

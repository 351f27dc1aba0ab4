package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"unicode/utf8"
)

// limited returns a copy of a request, with a body of maxBody bytes at most. The request itself
// stays as it is: net/http looks at its body after the answer, and if it finds another one there it
// waits for as much as was announced, instead of closing the connection.
func limited(w http.ResponseWriter, r *http.Request) *http.Request {
	if r.Body == nil {
		return r
	}
	q := new(http.Request)
	*q = *r
	q.Body = http.MaxBytesReader(w, r.Body, maxBody)
	return q
}

// bodyOf reads a body, which must be of a media type and UTF-8.
func bodyOf(r *http.Request, mediaType string) ([]byte, error) {
	given, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if charset := params["charset"]; err != nil || given != mediaType || charset != "" && charset != "utf-8" && charset != "UTF-8" {
		return nil, problemOf("media-type", "content of type %.100q: want %s", r.Header.Get("Content-Type"), mediaType)
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return nil, problemOf("media-type", "content is encoded by %.100q: want it as it is", encoding)
	}
	b, err := io.ReadAll(r.Body)
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, problemOf("too-large", "want %d bytes at most", large.Limit)
	case err != nil:
		return nil, problemOf("bad-request", "the content has not arrived whole")
	case !utf8.Valid(b):
		return nil, problemOf("bad-request", "the content is not UTF-8")
	}
	return b, nil
}

// formOf reads a form, whose fields must be known.
func formOf(r *http.Request, known ...string) (params, error) {
	if r.URL.RawQuery != "" {
		return nil, problemOf("bad-request", "parameters in the address: want them in the form")
	}
	b, err := bodyOf(r, "application/x-www-form-urlencoded")
	if err != nil {
		return nil, err
	}
	values, err := url.ParseQuery(string(b))
	if err != nil {
		return nil, problemOf("bad-request", "the form is malformed")
	}
	return checked(values, true, known)
}

// jsonOf reads one JSON object into v. It refuses unknown fields, and those that are there twice or
// in other letters, which encoding/json would accept: a proxy that inspects the object on its way
// may take it for another claim.
func jsonOf(r *http.Request, v any, known ...string) error {
	if r.URL.RawQuery != "" {
		return problemOf("bad-request", "parameters in the address: want them in the object")
	}
	b, err := bodyOf(r, "application/json")
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	if begin, err := d.Token(); err != nil || begin != json.Delim('{') {
		return problemOf("bad-request", "the content is no JSON object: want one, with the fields %q", known)
	}
	seen := map[string]bool{}
	for d.More() {
		field, err := d.Token()
		if err != nil {
			return malformed(err)
		}
		name, _ := field.(string) // as all are in this place
		switch {
		case !slices.Contains(known, name):
			return problemOf("bad-request", "unknown field %.100q: known are %q", name, known)
		case seen[name]:
			return problemOf("bad-request", "the field %s stands there twice: want it once", name)
		}
		seen[name] = true
		if err := d.Decode(new(json.RawMessage)); err != nil {
			return malformed(err)
		}
	}
	if _, err := d.Token(); err != nil {
		return malformed(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return problemOf("bad-request", "something stands behind the JSON object: want one alone")
	}
	err = json.Unmarshal(b, v)
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong):
		return problemOf("bad-request", "the field %s is a JSON %.50s: want a %v", wrong.Field, wrong.Value, wrong.Type)
	case err != nil:
		return malformed(err)
	}
	return nil
}

// malformed returns the problem of a text that is not JSON.
func malformed(err error) *problem {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return problemOf("bad-request", "the JSON object does not end: want it whole")
	}
	return problemOf("bad-request", "the JSON: %.200v", err)
}

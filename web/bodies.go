package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"unicode/utf8"
)

// bodyOf reads a body of some type of content.
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

// formOf reads a form.
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

// jsonOf reads one JSON object into v, and refuses what v has no place for.
func jsonOf(r *http.Request, v any) error {
	if r.URL.RawQuery != "" {
		return problemOf("bad-request", "parameters in the address: want them in the object")
	}
	b, err := bodyOf(r, "application/json")
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return problemOf("bad-request", "the JSON: %.200v", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return problemOf("bad-request", "something stands behind the JSON object: want one alone")
	}
	return nil
}

package filelock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Options are what can be chosen about a store. The zero value of each is its default.
type Options struct {
	// Files is how many records of idle names are kept open for speed, 256 by default. As a URL parameter: files=256.
	Files int

	// Logger is told of what an operator should know: a stranger who is stopped inside a record's lock. Default
	// slog.Default(). It cannot be given in a URL.
	Logger *slog.Logger
}

// The bounds of a session's time and the promises about it.
const (
	minTTL = 100 * time.Millisecond
	maxTTL = 24 * time.Hour
	grain  = 20 * time.Millisecond
	notice = 50 * time.Millisecond
)

func (o *Options) withDefaults() (Options, error) {
	var full Options
	if o != nil {
		full = *o
	}
	if full.Files < 0 {
		return full, fmt.Errorf("filelock: Options.Files is %d: want a number of open files, or 0 for the default", full.Files)
	}
	if full.Files == 0 {
		full.Files = 256
	}
	if full.Logger == nil {
		full.Logger = slog.Default()
	}
	return full, nil
}

func init() { driver.Register("file", open) }

// open opens the store that a URL names.
func open(_ context.Context, u *url.URL) (driver.Driver, error) {
	dir, err := dirOf(u)
	if err != nil {
		return nil, &driver.URLError{Err: err}
	}
	p := driver.NewParams(u)
	o := &Options{Files: driver.Param(p, "files", positive)}
	if err := p.Err(); err != nil {
		return nil, err
	}
	d, err := New(dir, o)
	if err != nil {
		return nil, err
	}
	return d, nil
}

func positive(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%q is no number of files: want 1 or more", s)
	}
	return n, nil
}

// dirOf returns the directory that u names: file:relative, file:/absolute or file:///absolute.
func dirOf(u *url.URL) (string, error) {
	switch {
	case u.Fragment != "":
		return "", errors.New("filelock: the store's URL has a # in it: want %23 if that is part of the directory's name")
	case u.User != nil || u.Host != "" && u.Host != "localhost":
		return "", fmt.Errorf("filelock: %s names a host: want file:DIR, or file:///DIR with three strokes", driver.Redact(u.String()))
	case u.Opaque != "":
		dir, err := url.PathUnescape(u.Opaque)
		if err != nil {
			return "", fmt.Errorf("filelock: the directory in the store's URL: %w", err)
		}
		return dir, nil
	case u.Path == "":
		return "", errors.New("filelock: the store's URL names no directory: want file:DIR")
	}
	return u.Path, nil
}

// traits are the promises of every store of this package.
func traits() driver.Traits {
	return driver.Traits{
		Ordered: true, Shared: true, Counted: true, Mixed: true, Events: driver.AllKinds, Expires: true,
		Fence: driver.Durable, MinTTL: minTTL, MaxTTL: maxTTL, Grain: grain, Notice: notice,
		Survives: driver.Survival{Restart: true},
	}
}

// Package tables has the command interlock make the tables of stores in databases without linking any of them: the package of a store says how,
// for its schemes, and a program that does not import it knows nothing of its database's client.
package tables

import (
	"context"
	"sync"

	"github.com/interlock-go/interlock/driver"
)

// Maker makes the tables of the stores of one scheme. What is wrong with the URL itself matches *driver.URLError.
type Maker struct {
	// Schema returns the SQL that makes everything in an empty database. It asks no server.
	Schema func(rawURL string) (sql string, err error)

	// Migrate makes everything, or brings it to the version of this program. It returns what has it then, as "database shop".
	Migrate func(ctx context.Context, rawURL string) (where string, err error)
}

// MakerOf returns the maker of a store whose package reads a URL by parse, as a configuration C of its client and options O of its own.
func MakerOf[C, O any](
	parse func(rawURL string) (C, O, error), schema func(O) (sql string, err error), migrate func(context.Context, C, O) (where string, err error),
) Maker {
	return Maker{
		Schema: func(rawURL string) (string, error) {
			_, o, err := parse(rawURL)
			if err != nil {
				return "", &driver.URLError{Err: err}
			}
			sql, err := schema(o)
			if err != nil {
				return "", &driver.URLError{Err: err}
			}
			return sql, nil
		},
		Migrate: func(ctx context.Context, rawURL string) (string, error) {
			c, o, err := parse(rawURL)
			if err != nil {
				return "", &driver.URLError{Err: err}
			}
			return migrate(ctx, c, o)
		},
	}
}

var (
	mu     sync.Mutex
	makers = map[string]Maker{}
)

// Register makes the maker of a scheme known to [Of]. Packages of stores call it from init; a second call for a scheme panics.
func Register(scheme string, m Maker) {
	mu.Lock()
	defer mu.Unlock()
	if _, ok := makers[scheme]; ok {
		panic("tables: scheme " + scheme + " is registered twice")
	}
	makers[scheme] = m
}

// Of returns the maker of a scheme, if a store of that scheme is linked and has tables.
func Of(scheme string) (m Maker, ok bool) {
	mu.Lock()
	defer mu.Unlock()
	m, ok = makers[scheme]
	return m, ok
}

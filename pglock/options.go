package pglock

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/lazyregexp"
)

// Options of a driver. The zero value is what most want.
type Options struct {
	// Technique is how locks are kept: "rows", the default; "session", by advisory locks on
	// connections of our own; or "rowlock", by SELECT … FOR UPDATE there, a connection for each
	// lock.
	Technique string

	// Keys is how technique session makes the key of a name: "interlock", the default, from 64 bits
	// of a hash; as others do, to share locks with them, "django", "dotnet", "symfony", "tooz" or
	// "with_advisory_lock"; or "number": the name is the key.
	Keys string

	// MaxWaiting is how many claims of a session may wait at once by technique session or rowlock,
	// on a connection each; default 32.
	MaxWaiting int

	// Schema has the tables; default "interlock". Prefix begins the names of all that is in it;
	// default none. Both are made of a-z, 0-9 and _.
	Schema, Prefix string

	// Timeout is how long the server may take for one answer, at most the TTL of a session; default
	// 3 s. A request without an answer leaves its outcome open: the core then releases the claim
	// until that is certain.
	Timeout time.Duration

	// Listen says how to connect to the server itself where the pool goes through a pooler that
	// shares connections, over which no NOTIFY arrives. Without it claims that wait poll. See
	// [pgx.ParseConfig].
	Listen *pgx.ConnConfig

	Logger *slog.Logger // default slog.Default()
}

const (
	defaultTimeout    = 3 * time.Second
	defaultMaxWaiting = 32
)

var identifier = lazyregexp.New(`^[a-z_][a-z0-9_]{0,29}$`)

func (o *Options) withDefaults() (Options, error) {
	var options Options
	if o != nil {
		options = *o
	}
	options.Schema = cmp.Or(options.Schema, "interlock")
	options.Timeout = cmp.Or(max(options.Timeout, 0), defaultTimeout)
	options.Logger = cmp.Or(options.Logger, slog.Default())
	options.MaxWaiting = cmp.Or(max(options.MaxWaiting, 0), defaultMaxWaiting)
	if _, err := convention(options.Keys); err != nil {
		return options, err
	}
	switch {
	case options.Keys != "" && options.Technique != "session": // else who means to share locks would share none
		return options, fmt.Errorf("pglock: keys %q are of technique session: want technique=session, or no keys", options.Keys)
	case !slices.Contains([]string{"", "rows", "session", "rowlock"}, options.Technique):
		return options, fmt.Errorf("pglock: unknown technique %q: want rows, session or rowlock", options.Technique)
	case !identifier.MatchString(options.Schema):
		return options, fmt.Errorf("pglock: schema %q: want at most 30 of a-z, 0-9 and _, and no digit first", options.Schema)
	case options.Prefix != "" && !identifier.MatchString(options.Prefix):
		return options, fmt.Errorf("pglock: prefix %q: want at most 30 of a-z, 0-9 and _, and no digit first", options.Prefix)
	}
	return options, nil
}

// in begins the names of tables and functions in SQL.
func (o *Options) in() string { return `"` + o.Schema + `".` + o.Prefix }

// where is the place of the tables, for messages.
func (o *Options) where() string {
	if o.Prefix == "" {
		return "schema " + o.Schema
	}
	return "schema " + o.Schema + " under prefix " + o.Prefix
}

const unusable = "the store cannot be used as it is: no lock can be had"

// absent is the finding about a database that has no tables of ours.
func (o *Options) absent() driver.Finding {
	return driver.Finding{
		Title: "tables", Level: driver.LevelBad, Seen: "no locks are kept in " + o.where(), Why: unusable,
		Mend: "interlock migrate --store URL; or the schema and the prefix by which they are kept elsewhere, by schema= and prefix= in the URL",
	}
}

package flawed

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Prefix begins the schemes of flawed locks.
const Prefix = "flawed+"

// Open connects to the lock that a URL names.
func Open(ctx context.Context, rawURL string) (driver.Driver, error) {
	scheme, rest, _ := strings.Cut(rawURL, "://")
	switch scheme {
	case Prefix + pooler:
		return openPooled(ctx, rest)
	case Prefix + face:
		return openFace(ctx, rest)
	case Prefix + lapsed, Prefix + lease:
		return openLeased(ctx, rest, scheme == Prefix+lapsed)
	case Prefix + anew, Prefix + sought:
		return openSequential(ctx, rest, scheme == Prefix+anew)
	}
	rest, query, _ := strings.Cut(rest, "?")
	hosts, master, _ := strings.Cut(rest, "/")
	i := slices.IndexFunc(kinds, func(k kind) bool { return Prefix+k.Name == scheme })
	if i < 0 || hosts == "" {
		var names []string
		for _, k := range kinds {
			names = append(names, k.Name)
		}
		return nil, fmt.Errorf("flawed: cannot read %q: want %sNAME://HOST:PORT with a NAME of %s", rawURL, Prefix, strings.Join(names, ", "))
	}
	o := options{addr: hosts, maxTTL: time.Minute}
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, fmt.Errorf("flawed: the parameters of the URL are malformed: %w", err)
	}
	if s := values.Get("skew"); s != "" {
		if o.skew, err = time.ParseDuration(s); err != nil {
			return nil, fmt.Errorf("flawed: parameter skew: %w", err)
		}
	}
	if s := values.Get("max_ttl"); s != "" {
		if o.maxTTL, err = time.ParseDuration(s); err != nil {
			return nil, fmt.Errorf("flawed: parameter max_ttl: %w", err)
		}
	}
	if kinds[i].over != nil {
		return openQuorum(ctx, kinds[i], strings.Split(hosts, ","), o)
	}
	redis, err := dial(strings.Split(hosts, ","), master)
	if err != nil {
		return nil, err
	}
	if err := redis.Do(ctx, redis.B().Ping().Build()).Error(); err != nil {
		redis.Close()
		return nil, fmt.Errorf("flawed: %w", err)
	}
	return &store{lock: kinds[i].make(honest{redis}, o), close: redis.Close, traits: driver.Traits{
		Expires: true, MinTTL: 20 * time.Millisecond, Grain: time.Millisecond,
	}}, nil
}

// openQuorum opens a lock over several masters, of which a majority must be there.
func openQuorum(ctx context.Context, k kind, hosts []string, o options) (driver.Driver, error) {
	var masters []*master
	for _, addr := range hosts {
		masters = append(masters, newMaster(addr))
	}
	q := k.over(newQuorum(masters, o.maxTTL))
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second+2*o.maxTTL)
	defer cancel()
	if err := q.settled(ctx); err != nil {
		q.close()
		return nil, fmt.Errorf("flawed: %w", err)
	}
	return &store{lock: q, close: q.close, traits: driver.Traits{
		Expires: true, Counted: true, Fence: driver.Durable, MinTTL: 100 * time.Millisecond, MaxTTL: o.maxTTL, Grain: time.Millisecond,
	}}, nil
}

package flawed

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/interlock-go/interlock/driver"
)

// Prefix begins the schemes of flawed locks.
const Prefix = "flawed+"

type options struct {
	skew time.Duration // of this process's clock
}

// Open connects to the lock that a URL names.
func Open(ctx context.Context, rawURL string) (driver.Driver, error) {
	scheme, rest, _ := strings.Cut(rawURL, "://")
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
	var o options
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, fmt.Errorf("flawed: the parameters of the URL are malformed: %w", err)
	}
	if s := values.Get("skew"); s != "" {
		if o.skew, err = time.ParseDuration(s); err != nil {
			return nil, fmt.Errorf("flawed: parameter skew: %w", err)
		}
	}
	redis, err := dial(strings.Split(hosts, ","), master)
	if err != nil {
		return nil, err
	}
	if err := redis.Do(ctx, redis.B().Ping().Build()).Error(); err != nil {
		redis.Close()
		return nil, fmt.Errorf("flawed: %w", err)
	}
	return &store{lock: kinds[i].make(honest{redis}, o), redis: redis}, nil
}

// dial connects with one connection for all commands, which keeps their order, and without a retry of anything.
func dial(hosts []string, master string) (rueidis.Client, error) {
	o := rueidis.ClientOption{
		InitAddress: hosts, DisableCache: true, DisableRetry: true, AlwaysPipelining: true, PipelineMultiplex: -1,
		Dialer: net.Dialer{Timeout: 2 * time.Second}, ForceSingleClient: master == "",
	}
	if master != "" {
		o.Sentinel = rueidis.SentinelOption{MasterSet: master}
	}
	c, err := rueidis.NewClient(o)
	if err != nil {
		return nil, fmt.Errorf("flawed: connect: %w", err)
	}
	return c, nil
}

// store implements driver.Driver.
type store struct {
	lock  lock
	redis rueidis.Client
}

// Traits implements driver.Driver: mutexes, and nothing else.
func (s *store) Traits() driver.Traits {
	return driver.Traits{Expires: true, MinTTL: 20 * time.Millisecond, Grain: time.Millisecond}
}

// Close implements driver.Driver.
func (s *store) Close(context.Context) error {
	s.redis.Close()
	return nil
}

// Open implements driver.Driver. A session is nothing at the server: each key has a time of its own.
func (s *store) Open(ctx context.Context, spec driver.Spec) (driver.Session, error) {
	ttl := max(spec.TTL.Truncate(time.Millisecond), s.Traits().MinTTL)
	return &session{lock: s.lock, ttl: ttl, claims: map[string]*claim{}}, nil
}

package memcachedlock

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/memcache"
	"github.com/interlock-go/interlock/internal/storeurl"
)

// cluster is the servers among which names are spread.
type cluster struct {
	options Options
	servers []*memcache.Client // in the order of their addresses
}

// newCluster returns the servers at these addresses, which are not connected yet.
func newCluster(addrs []string, o *Options) (*cluster, error) {
	var sorted []string
	for _, s := range addrs {
		addr, err := storeurl.Host(s, "11211")
		if err != nil {
			return nil, fmt.Errorf("%w: %w", driver.ErrRefused, err)
		}
		sorted = append(sorted, addr)
	}
	slices.Sort(sorted)
	if sorted = slices.Compact(sorted); len(sorted) == 0 || len(sorted) < len(addrs) {
		return nil, fmt.Errorf("%w: %d servers, of which %d differ: want each once, and all that there are", driver.ErrRefused, len(addrs), len(sorted))
	}
	options, err := o.withDefaults(len(sorted))
	if err != nil {
		return nil, err
	}
	c := &cluster{options: options}
	for _, addr := range sorted {
		c.servers = append(c.servers, memcache.New(memcache.Server{Addr: addr, User: options.User, Password: options.Password, TLS: options.TLS, Timeout: options.Timeout}))
	}
	return c, nil
}

// reach returns nil when a server has answered, or why none did.
func (c *cluster) reach(ctx context.Context) (err error) {
	answers := make(chan error, len(c.servers))
	for _, s := range c.servers {
		go func() {
			_, err := s.Do(ctx, memcache.Nothing())
			answers <- err
		}()
	}
	for range c.servers {
		why := <-answers
		if why == nil {
			return nil
		}
		err = errors.Join(err, why)
	}
	return err
}

// server returns the one that a key belongs to, whether that answers or not. A key gives each
// server a number, and the largest has it: so where a server is added or removed only its own keys
// move.
func (c *cluster) server(key string) (best *memcache.Client) {
	if len(c.servers) == 1 {
		return c.servers[0]
	}
	var most uint64
	for _, s := range c.servers {
		sum := sha256.Sum256([]byte(s.Addr + " " + key))
		if n := binary.BigEndian.Uint64(sum[:]); best == nil || n > most {
			best, most = s, n
		}
	}
	return best
}

// disconnect ends all connections, for good.
func (c *cluster) disconnect() {
	for _, s := range c.servers {
		s.Close()
	}
}

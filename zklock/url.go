package zklock

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
)

func init() { driver.Register("zk", open) }

// open opens the store of a URL such as zk://a:2181,b:2181/locks?timeout=5s.
func open(ctx context.Context, u *url.URL) (driver.Driver, error) {
	p := driver.NewParams(u)
	o := &Options{Path: u.Path, Timeout: driver.Param(p, "timeout", func(s string) (time.Duration, error) {
		d, err := time.ParseDuration(s)
		if err != nil || d <= 0 {
			return 0, fmt.Errorf("want a time such as 3s")
		}
		return d, nil
	}), SemaphoreMutex: driver.Param(p, "mutex", func(s string) (bool, error) {
		if s != "semaphore" {
			return false, fmt.Errorf("want semaphore, to have mutexes as Curator's InterProcessSemaphoreMutex, or none")
		}
		return true, nil
	})}
	if err := p.Err(); err != nil {
		return nil, err
	}
	switch {
	case u.User != nil:
		return nil, fmt.Errorf("zklock: the store's URL has a user, and authentication is not supported yet: want zk://HOST:PORT,HOST:PORT/PATH")
	case u.Host == "" || u.Opaque != "" || u.Fragment != "":
		return nil, fmt.Errorf("zklock: the store's URL names no server: want zk://HOST:PORT,HOST:PORT/PATH")
	}
	return New(ctx, strings.Split(u.Host, ","), o)
}

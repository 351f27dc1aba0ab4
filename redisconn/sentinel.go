package redisconn

import (
	"context"
	"sync"
)

// EachSentinel calls visit for each Sentinel that was named, one after the other, with the name
// that it knows the master by and a way to send commands to it alone, over a connection of its own,
// or with the error that it cannot be reached. It does nothing without Sentinels, or if the client
// is the program's. It is not in Conn, since only the doctor needs it.
func (c *conn) EachSentinel(ctx context.Context, visit func(addr, master string, do DoFunc, err error)) {
	if c.config.Master == "" {
		return
	}
	conns, errs := make([]Conn, len(c.config.Addrs)), make([]error, len(c.config.Addrs))
	var all sync.WaitGroup
	for i, addr := range c.config.Addrs {
		all.Go(func() {
			conns[i], errs[i] = Open(ctx, Config{
				Addrs: []string{addr}, Username: c.config.SentinelUsername, Password: c.config.SentinelPassword,
				TLS: c.config.TLS, Timeout: c.config.Timeout, ClientName: c.config.ClientName, Dial: c.config.Dial,
			})
		})
	}
	all.Wait()
	for i, addr := range c.config.Addrs {
		if errs[i] != nil {
			visit(addr, c.config.Master, nil, errs[i])
			continue
		}
		_ = conns[i].EachMaster(ctx, func(do DoFunc) error { // of one server that one
			visit(addr, c.config.Master, do, nil)
			return nil
		})
		conns[i].Close()
	}
}

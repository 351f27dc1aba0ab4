package redisconn

import (
	"context"
	"crypto/tls"
	"net"
	"time"
)

// Config is how [Open] reaches a Redis. Its fields are what a URL says.
type Config struct {
	Addrs    []string // host:port of the server, of cluster nodes, or of sentinels
	Master   string   // the name that sentinels know the master by; empty without sentinels
	Cluster  bool
	Username string
	Password string
	DB       int

	SentinelUsername string
	SentinelPassword string

	TLS *tls.Config // nil: not encrypted

	// Timeout is how long a connection may take to be made and a command to be answered. Default 3
	// s. A connection with an unanswered command is then given up.
	Timeout time.Duration

	// KeepAlive is the time between the pings of a connection that is listened to. Default 5 s.
	KeepAlive time.Duration

	ClientName string // as CLIENT LIST shows it; default "interlock"

	// Dial makes a connection to addr, through a proxy for instance; a URL cannot say it. Default:
	// a net.Dialer with Timeout and KeepAlive. TLS is added to what it returns.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Default values of Config.
const (
	DefaultTimeout   = 3 * time.Second
	DefaultKeepAlive = 5 * time.Second
)

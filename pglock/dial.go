package pglock

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
)

// connect makes a connection that is not of the source, since it is kept: to the server that Listen
// names, or as the source makes its own. Change may change its configuration.
func (s *server) connect(ctx context.Context, change func(*pgx.ConnConfig)) (*pgx.Conn, error) {
	if s.options.Listen == nil {
		return s.source.connect(ctx, change)
	}
	config := s.options.Listen.Copy()
	change(config)
	return pgx.ConnectConfig(ctx, config)
}

// dial makes a connection that is kept, asks over it, and returns the last row.
func (s *server) dial(ctx context.Context, sql string) (*pgx.Conn, [][]byte, error) {
	pc, err := s.connect(ctx, func(*pgx.ConnConfig) {})
	if err != nil {
		return nil, nil, classify(unconnected{err}, &s.options)
	}
	keepAlive(pc.PgConn().Conn())
	f, err := row(ctx, pc, sql)
	if err != nil {
		_ = pc.Close(ctx)
		return nil, nil, classify(err, &s.options)
	}
	return pc, f, nil
}

// keepAlive makes the system notice within half a minute that the server's machine is gone.
func keepAlive(nc net.Conn) {
	if t, ok := nc.(interface{ NetConn() net.Conn }); ok { // by TLS
		nc = t.NetConn()
	}
	if t, ok := nc.(*net.TCPConn); ok {
		_ = t.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3})
	}
}

// row asks over a connection that nobody else uses, and returns the last row.
func row(ctx context.Context, pc *pgx.Conn, sql string) ([][]byte, error) {
	results, err := pc.PgConn().Exec(ctx, sql).ReadAll()
	if err == nil && (len(results) == 0 || len(results[len(results)-1].Rows) == 0) {
		err = errNothing
	}
	if err != nil {
		return nil, err
	}
	return results[len(results)-1].Rows[0], nil
}

var errNothing = errors.New("the server answered nothing")

// ping asks only who answers.
const ping = "select pg_backend_pid()"

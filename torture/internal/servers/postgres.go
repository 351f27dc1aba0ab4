//go:build linux || darwin

package servers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/workers/monotonic"
	"github.com/interlock-go/interlock/pglock"
)

// postgres is a PostgreSQL that was started for a run, with the tables of pglock, and what stands
// beside it.
type postgres struct {
	usual
	primary  *servertest.Server
	standby  *servertest.Server // nil where there is none, as is the pooler
	pooler   *servertest.Server
	sync     bool   // what the primary commits the standby has
	query    string // what the store's URL has besides
	shedlock bool   // the locks are in ShedLock's table
}

// apart is how far the clock of a PostgreSQL is from those of its clients: no lock may look at
// both.
const apart = -7 * time.Hour

// startPostgres starts one. It writes down what it commits before it says so, and its clock is
// hours behind.
func startPostgres(ctx context.Context, name, urlQuery string) (_ kind, err error) {
	p := &postgres{sync: name == PostgresSync, query: urlQuery, shedlock: name == ShedPostgres}
	o := servertest.Options{Args: []string{"-c", "fsync=on"}, Clock: name == Postgres || name == ShedPostgres}
	replicated := name == PostgresSync || name == PostgresAsync
	if replicated {
		o.Args = append(o.Args, servertest.Replicated...)
	}
	if p.primary, err = servertest.StartPostgres(ctx, o); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	if o.Clock {
		if err := p.primary.Step(apart); err != nil {
			return nil, err
		}
	}
	pool, err := pgxpool.New(ctx, p.primary.URL())
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	if err := pglock.Migrate(ctx, pool, nil); err != nil {
		return nil, err
	}
	switch {
	case p.shedlock:
		err = query(ctx, p.primary, shedlockTable)
	case name == PostgresPooler:
		p.pooler, err = servertest.StartPgBouncer(ctx, p.primary, servertest.Options{})
	case replicated:
		err = p.follow(ctx, 0)
	}
	return p, err
}

// follow starts a standby, at any port or the one that is named, and where the primary is to wait
// for it has it wait.
func (p *postgres) follow(ctx context.Context, port int) (err error) {
	if p.standby, err = servertest.StartStandby(ctx, p.primary, servertest.Options{Port: port}); err != nil {
		return err
	}
	if err := until(ctx, func() error {
		return answers(ctx, p.primary, "select count(*) from pg_stat_replication where state = 'streaming'", "1")
	}); err != nil {
		return err
	}
	if !p.sync {
		return nil
	}
	if err := query(ctx, p.primary, "alter system set synchronous_standby_names = '*'", "select pg_reload_conf()"); err != nil {
		return err
	}
	return until(ctx, func() error {
		return answers(ctx, p.primary, "select count(*) from pg_stat_replication where sync_state = 'sync'", "1")
	})
}

func (p *postgres) url() string {
	u := p.at()
	if p.query != "" {
		u += "&" + p.query
	}
	if p.shedlock {
		u = "shedlock+" + u
	}
	return u
}

// at names all servers: a client asks for the one that writes.
func (p *postgres) at() string {
	switch {
	case p.pooler != nil:
		return p.pooler.URL()
	case p.standby != nil:
		hosts := addrs(p.nodes())
		slices.Sort(hosts)
		return fmt.Sprintf("postgres://postgres@%s/postgres?sslmode=disable&target_session_attrs=read-write&connect_timeout=2", strings.Join(hosts, ","))
	}
	return p.primary.URL()
}

func (p *postgres) nodes() []*servertest.Server {
	if p.standby == nil {
		return []*servertest.Server{p.primary}
	}
	return []*servertest.Server{p.primary, p.standby}
}

func (p *postgres) proxied() []string {
	if p.pooler != nil {
		return []string{p.pooler.Addr()}
	}
	return addrs(p.nodes())
}

func (p *postgres) tells() bool { return !ofConnections(p.query) }

func (p *postgres) close() error {
	var errs []error
	for _, s := range []*servertest.Server{p.pooler, p.standby, p.primary} {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(errs...)
}

// entries leaves out sessions whose time is over: such a row may stay for an hour until somebody
// sweeps it away.
func (p *postgres) entries(ctx context.Context) (int, error) {
	n, err := p.number(ctx, allRows)
	if err != nil || p.shedlock {
		return n, err
	}
	over, err := p.number(ctx, "select count(*) from interlock.session where until < interlock.us()")
	return n - over, err
}

// number returns the answer of the primary to a statement that is answered by a number.
func (p *postgres) number(ctx context.Context, sql string) (int, error) {
	text, err := ask(ctx, p.primary, sql)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(text)
}

// allRows counts the rows of all tables.
const allRows = `select coalesce(sum((xpath('/row/n/text()', query_to_xml(format('select count(*) as n from %I.%I', schemaname, tablename), false, true, '')))[1]::text::bigint), 0)
from pg_tables where schemaname not in ('pg_catalog', 'information_schema')`

// query sends a server some statements, each over a connection of its own.
func query(ctx context.Context, s *servertest.Server, all ...string) error {
	for _, sql := range all {
		if _, err := ask(ctx, s, sql); err != nil {
			return err
		}
	}
	return nil
}

// answers asks until the answer is as wanted: one look, to be repeated.
func answers(ctx context.Context, s *servertest.Server, sql, want string) error {
	got, err := ask(ctx, s, sql)
	if err == nil && got != want {
		err = fmt.Errorf("%s: %s, want %s", sql, got, want)
	}
	return err
}

// ask returns the first field of the last row.
func ask(ctx context.Context, s *servertest.Server, sql string) (string, error) {
	c, err := pgx.Connect(ctx, s.URL()+"&connect_timeout=5")
	if err != nil {
		return "", err
	}
	defer c.Close(context.WithoutCancel(ctx))
	results, err := c.PgConn().Exec(ctx, sql).ReadAll()
	if err != nil || len(results) == 0 {
		return "", err
	}
	if rows := results[len(results)-1].Rows; len(rows) > 0 {
		return string(rows[0][0]), nil
	}
	return "", nil
}

func (p *postgres) harm(ctx context.Context, i *Injector, fault string) error {
	switch fault {
	case FaultTerminate:
		return p.terminate(ctx, i)
	case FaultExhaust:
		return p.exhaust(ctx, i)
	case FaultFailover, FaultStale:
		return p.promote(ctx, i, fault == FaultStale)
	case FaultPause:
		return p.pause(ctx, i)
	case FaultRestart:
		return i.restart(ctx, p.primary)
	}
	return fmt.Errorf("torture: no fault %q of a PostgreSQL", fault)
}

// terminate ends half of the backends, which an administrator does, or a server that is short of
// memory.
func (p *postgres) terminate(ctx context.Context, i *Injector) error {
	i.note("ends half of its connections")
	return query(ctx, p.primary, "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and backend_type = 'client backend' and random() < 0.5")
}

// exhaust takes all connections that the server has left, for half to three times the TTL, so that
// nobody gets a new one.
func (p *postgres) exhaust(ctx context.Context, i *Injector) error {
	config, err := pgx.ParseConfig(p.primary.URL())
	if err != nil {
		return err
	}
	config.User = "nobody" // who is no superuser gets none of the last
	if err := query(ctx, p.primary, "do $$ begin create role nobody login; exception when duplicate_object then null; end $$"); err != nil {
		return err
	}
	return i.takeAll(ctx, func() (closeConn func() error, err error) {
		c, err := pgx.ConnectConfig(ctx, config)
		if err != nil {
			return nil, err
		}
		return func() error { return c.Close(context.WithoutCancel(ctx)) }, nil
	})
}

// promote kills the primary and makes its standby the primary. Where that is to be stale the
// standby hears nothing for a while before: what was granted since is lost. The dead one does not
// come back; a fresh standby follows.
func (p *postgres) promote(ctx context.Context, i *Injector, stale bool) error {
	if stale {
		if err := query(ctx, p.standby, "alter system set primary_conninfo = 'host=127.0.0.1 port=1'", "select pg_reload_conf()"); err != nil {
			return err
		}
		i.note("the standby at %s hears nothing any more", p.standby.Addr())
		monotonic.Pause(i.some(1, 3), ctx.Done())
	}
	i.note("the primary at %s is killed", p.primary.Addr())
	if err := p.primary.Kill(); err != nil {
		return err
	}
	if err := answers(ctx, p.standby, "select pg_promote()", "t"); err != nil {
		return err
	}
	i.note("the standby at %s is the primary", p.standby.Addr())
	dead := p.primary
	p.primary, p.standby = p.standby, nil
	if err := dead.Close(); err != nil {
		return err
	}
	defer i.note("another standby follows it, at %s", dead.Addr())
	return p.follow(ctx, dead.Port())
}

// pause stops all processes of the server, each of which is by itself, for half to three times the
// TTL.
func (p *postgres) pause(ctx context.Context, i *Injector) error {
	s := p.primary
	text, err := ask(ctx, s, "select string_agg(pid::text, ' ') from pg_stat_activity where pid <> pg_backend_pid()")
	if err != nil {
		return err
	}
	signal := func(sig syscall.Signal) {
		for _, word := range strings.Fields(text) {
			if pid, err := strconv.Atoi(word); err == nil {
				_ = syscall.Kill(pid, sig) // one that has ended is none
			}
		}
	}
	i.note("is stopped")
	if err := s.Pause(); err != nil {
		return err
	}
	signal(syscall.SIGSTOP)
	monotonic.Pause(i.some(0.5, 3), ctx.Done())
	signal(syscall.SIGCONT)
	defer i.note("is continued")
	return s.Resume()
}

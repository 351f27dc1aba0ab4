package serve

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/web"
)

const (
	startWait   = 3 * time.Second  // for the stores, at the start; they are opened later if need be
	lastAnswers = 10 * time.Second // for answers under way, at the end
	lastStores  = 5 * time.Second  // for the closing of the stores, after that
)

// spareFiles is how many file descriptors are left to the connections of stores and to the process.
const spareFiles = 128

// Run serves until ctx ends, and then until what is under way is answered, or another SIGTERM or
// interrupt comes. It returns a *ConfigError for what is wrong with the options.
func Run(ctx context.Context, o *Options) error {
	if err := o.check(); err != nil {
		return err
	}
	s, err := newServer(o)
	if err != nil {
		return err
	}
	config, files, err := o.tlsConfig()
	if err != nil {
		return err
	}
	if o.ClientCA != "" {
		s.who.authorities = func() *x509.CertPool { return files.current().ClientCAs }
	}
	listeners, err := o.listen()
	if err != nil {
		return err
	}
	defer func() {
		for _, l := range listeners {
			_ = l.Close() // already, where all went well
		}
	}()
	s.hosts = reachable(o.Hosts, listeners)
	if err := s.addStores(); err != nil {
		return err
	}
	pages, err := s.newPages() // which refuses bad names of stores, before any is opened
	if err != nil {
		return &ConfigError{err}
	}
	s.pages = pages
	closeStores, err := s.openStores(ctx)
	defer func() {
		pages.Close()
		closeStores()
	}()
	if err != nil {
		return err
	}

	s.conns = newConns(o.most(), func() { s.meters.dropped.connections.Add(1) })
	s.meters.connections, s.meters.streams = s.conns.count, s.streams.count
	h := s.httpServer(config)
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)

	failed := make(chan error, len(listeners))
	for _, l := range listeners {
		go func() {
			if config != nil {
				failed <- h.ServeTLS(l, "", "")
			} else {
				failed <- h.Serve(l)
			}
		}()
		if o.Ready != nil {
			o.Ready(o.urlOf(l))
		}
	}
	notify("READY=1")
	for {
		select {
		case <-hangups:
			s.who.reload(o.Logger)
			if files != nil {
				files.reload()
			}
			continue
		case err := <-failed:
			_ = h.Close()
			return fmt.Errorf("cannot serve: %w", err)
		case <-ctx.Done():
		}
		return s.end(ctx, h)
	}
}

// newServer returns a server that has no stores and no pages yet.
func newServer(o *Options) (*server, error) {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // which never fails
	who, err := newCredentials(o, key)
	if err != nil {
		return nil, err
	}
	return &server{
		opts: o, log: o.Logger, who: who, wrong: newAttempts(time.Now), cross: http.NewCrossOriginProtection(), meters: newMeters(),
	}, nil
}

// httpServer returns the HTTP server of s, with TLS where config is not nil.
func (s *server) httpServer(config *tls.Config) *http.Server {
	return &http.Server{
		Handler: s, TLSConfig: config, ConnState: s.conns.changed, ConnContext: connContext, MaxHeaderBytes: maxHeader,
		DisableGeneralOptionsHandler: true, // OPTIONS * is answered by 404, with the defences
		ReadHeaderTimeout:            headerTime, ReadTimeout: bodyTime, WriteTimeout: answerTime, IdleTimeout: idleTime,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug), // what clients do wrong
	}
}

// newPages returns the pages of the stores.
func (s *server) newPages() (*web.Handler, error) {
	var shown []web.Store
	for _, st := range s.stores {
		shown = append(shown, web.Store{Name: st.name, URL: driver.Redact(st.url), Driver: st})
	}
	return web.New(shown, &web.Options{Prefix: s.opts.Prefix, Hosts: s.hosts, Authorize: s.authorize, Streams: s.opts.Streams, Logger: s.log})
}

// addStores adds the stores of the options, none of which is open yet.
func (s *server) addStores() error {
	seen := map[string]bool{}
	for _, named := range s.opts.Stores {
		if seen[named[0]] {
			return configError("two stores are called %q: want --store NAME=URL with a name for each", named[0])
		}
		seen[named[0]] = true
		s.stores = append(s.stores, newStore(named[0], named[1], s.log))
	}
	return nil
}

// openStores opens all stores, and waits startWait for them. A wrong URL is an error; a store that
// cannot be reached is not. closeAll closes those that are open.
func (s *server) openStores(ctx context.Context) (closeAll func(), err error) {
	lasting := context.WithoutCancel(ctx) // until the end of the server, not until it is to end
	ctx, cancel := context.WithCancel(lasting)
	var opening sync.WaitGroup
	closeAll = func() {
		cancel()
		ending, done := context.WithTimeout(lasting, lastStores)
		defer done()
		for _, st := range s.stores {
			if err := st.Close(ending); err != nil {
				st.log.Warn("the store could not be closed", "error", err)
			}
		}
		opening.Wait()
	}
	first := make(chan error, len(s.stores))
	for _, st := range s.stores {
		opening.Go(func() {
			once := sync.Once{}
			st.open(ctx, func(err error) { once.Do(func() { first <- err }) })
		})
	}
	late := time.NewTimer(startWait)
	defer late.Stop()
	for range s.stores {
		select {
		case err := <-first:
			if errors.As(err, new(*driver.URLError)) {
				return closeAll, &ConfigError{err}
			}
		case <-late.C:
			return closeAll, nil
		}
	}
	return closeAll, nil
}

// end ends the server. First it is not ready, and its streams end, whose browsers come back to
// another server; after Drain it accepts no more connections, and waits for the answers under way.
func (s *server) end(ctx context.Context, h *http.Server) error {
	again := make(chan os.Signal, 1)
	signal.Notify(again, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(again)
	s.draining.Store(true)
	notify("STOPPING=1")
	s.log.Info("ending", "drain", s.opts.Drain)
	s.streams.endAll()
	if s.opts.Drain > 0 {
		t := time.NewTimer(s.opts.Drain)
		defer t.Stop()
		select {
		case <-t.C:
		case <-again:
			return h.Close()
		}
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastAnswers)
	defer cancel()
	go func() {
		select {
		case <-again:
			cancel()
		case <-bounded.Done():
		}
	}()
	if err := h.Shutdown(bounded); err != nil {
		s.log.Warn("answers were cut off", "after", lastAnswers)
		_ = h.Close()
	}
	s.log.Info("ended")
	return nil
}

// most returns how many connections there may be: as many as wanted, if there are enough file
// descriptors.
func (o *Options) most() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur >= uint64(o.Connections+spareFiles) {
		return o.Connections
	}
	most := max(int(limit.Cur)-spareFiles, 10)
	o.Logger.Warn("there are too few file descriptors for --max-connections: want a higher limit (ulimit -n, LimitNOFILE= in a unit)", "wanted", o.Connections, "connections", most)
	return most
}

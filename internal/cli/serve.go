package cli

import (
	"context"
	"log/slog"
	"strings"
	"time"
)

// Serving is what the command line of serve says, as internal/serve.Options has it. The command
// does not import that package: most runs need no server, and a program with the embedded store
// alone would link one.
type Serving struct {
	Stores [][2]string // the name and the URL of each

	Listen     string
	Hosts      []string
	Prefix     string
	AllowBreak bool

	TokenFile                 string
	TLSCert, TLSKey, ClientCA string
	BehindTLSProxy            bool

	Connections, Streams int
	Drain                time.Duration

	Logger *slog.Logger
	Ready  func(url string)
}

// Serve serves until ctx ends. It is set by package command/serve, in a program that imports it.
var Serve func(ctx context.Context, s *Serving) error

// Usage is an error of the command line, for [Serve].
func Usage(err error) error { return &exitError{exitUsage, withoutMemory(err)} }

type serveCommand struct {
	Listen         string        `help:"Where requests come in: HOST:PORT, or unix:PATH for a socket that only this user may connect to. Default: the sockets of systemd, or 127.0.0.1:7070." placeholder:"ADDRESS"`
	Host           []string      `help:"A name by which browsers reach the server, with a port or without, as locks.example.org; may be given again. Those of loopback, and the addresses that it listens on, are known." placeholder:"NAME"`
	Prefix         string        `help:"The path below which everything stands for browsers, as /locks, where a proxy has other things beside it. The proxy may take it away or not." placeholder:"PATH"`
	AllowBreak     bool          `help:"Let locks be broken, by those whose token has break=."`
	TokenFile      string        `help:"A file of tokens, a line each: token=SECRET or sha256=HEX, name=WHO, read=PREFIX,… break=PREFIX,… expires=DAY. It is read again when it changes." placeholder:"FILE" type:"path"`
	TLSCert        string        `name:"tls-cert" help:"The server's certificate, in PEM." placeholder:"FILE" type:"path"`
	TLSKey         string        `name:"tls-key" help:"Its key." placeholder:"FILE" type:"path"`
	ClientCA       string        `name:"client-ca" help:"Let in clients whose certificate is signed by one of these, in PEM; with --token-file, those that a line cert=NAME there names." placeholder:"FILE" type:"path"`
	BehindTLSProxy bool          `name:"behind-tls-proxy" help:"A proxy speaks TLS for this server, and says in X-Forwarded-For who asks. Nobody else must reach it."`
	MaxConnections int           `help:"How many connections there may be. Of more, one that has no request under way is closed." default:"2000" placeholder:"N"`
	MaxStreams     int           `help:"How many pages may be open that follow the locks." default:"500" placeholder:"N"`
	Drain          time.Duration `help:"How long to go on answering after SIGTERM, with 503 at /readyz, before the address is given up." default:"0s" placeholder:"TIME"`
}

// Help implements kong.HelpProvider.
func (*serveCommand) Help() string {
	return "Shows who holds and who waits, as pages for browsers and as JSON, of one store or several: --store may be given again here, with a name before each URL, as --store orders=redis://HOST, " +
		"and with --store-file each line is one. Metrics for Prometheus are at /metrics; /healthz says whether the process answers, /readyz whether each store does.\n\n" +
		"Nothing can be broken without --allow-break. On a loopback address, and on a socket of this user, nobody needs a credential, whoever has a login on this machine; on any other address " +
		"the server does not start without --token-file or --client-ca. A person gives the token once, to a page that asks for it; a program sends it as Authorization: Bearer TOKEN.\n\n" +
		"SIGHUP reads the files of tokens and of TLS again. SIGTERM ends the server when what is under way is answered; another one ends it at once."
}

// Run serves until a signal.
func (c *serveCommand) Run(ctx context.Context, t terminal, common *commonFlags) error {
	if Serve == nil {
		return usage(`this program has no server: import _ "github.com/interlock-go/interlock/command/serve" to have it`)
	}
	stores, err := common.stores(t)
	if err != nil {
		return err
	}
	for _, f := range []string{"--token-file", "--tls-cert", "--tls-key", "--client-ca"} {
		if empty(common.args, f) {
			return usage("%s is empty, as a variable that is not set: want a file", f)
		}
	}
	if empty(common.args, "--listen") {
		return usage("--listen is empty, as a variable that is not set: want HOST:PORT, or unix:PATH")
	}
	if empty(common.args, "--host") {
		return usage("--host is empty, as a variable that is not set: want a name, as locks.example.org")
	}
	log := newServeLog(t, common)
	slog.SetDefault(log) // for what the drivers say
	return Serve(ctx, &Serving{
		Stores: stores, Listen: c.Listen, Hosts: c.Host, Prefix: strings.TrimRight(c.Prefix, "/"), AllowBreak: c.AllowBreak,
		TokenFile: c.TokenFile, TLSCert: c.TLSCert, TLSKey: c.TLSKey, ClientCA: c.ClientCA, BehindTLSProxy: c.BehindTLSProxy,
		Connections: c.MaxConnections, Streams: c.MaxStreams, Drain: c.Drain, Logger: log,
		Ready: func(url string) {
			if common.JSON {
				_ = printJSON(t.out, struct { // output keeps the error
					URL string `json:"url"`
				}{url})
				return
			}
			t.print("%s", url)
		},
	})
}

// newServeLog is the log of a server: lines of keys and values, or of JSON, with what was changed
// by whom.
func newServeLog(t terminal, common *commonFlags) *slog.Logger {
	o := &slog.HandlerOptions{Level: slog.LevelInfo}
	if common.Verbose {
		o.Level = slog.LevelDebug
	}
	if common.JSON {
		return slog.New(slog.NewJSONHandler(t.err, o))
	}
	return slog.New(slog.NewTextHandler(t.err, o))
}

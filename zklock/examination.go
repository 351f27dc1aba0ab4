package zklock

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/zk"
)

// examination is one of an ensemble.
type examination struct {
	driver.Exam
	d       *Driver
	servers []server // by the addresses of the driver
	membership
	found []driver.Finding
}

func (x *examination) add(f driver.Finding) { x.found = append(x.found, f) }

// ensemble reports whether the servers are members of one, as opposed to a server that stands
// alone.
func (x *examination) ensemble() bool { return x.votes+x.observers > 1 }

// membership is who belongs to an ensemble.
type membership struct {
	told             bool
	votes, observers int
	weighted         bool     // some votes count more than others
	hosts            []string // of the members
}

// membersOf reads the configuration that the servers keep as a node: lines such as
// server.1=zk1:2888:3888:participant;2181. That of a server that stands alone is empty.
func membersOf(config string) membership {
	m := membership{told: true}
	for line := range strings.Lines(config) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch what, _, _ := strings.Cut(key, "."); what {
		case "server":
			addrs, _, _ := strings.Cut(value, ";") // and where its clients connect
			if strings.HasSuffix(addrs, ":observer") {
				m.observers++
			} else {
				m.votes++
			}
			for addr := range strings.SplitSeq(addrs, "|") { // one that has several
				host, _, _ := strings.Cut(addr, ":")
				if in, _, ok := strings.Cut(strings.TrimPrefix(addr, "["), "]"); ok {
					host = in
				}
				m.hosts = append(m.hosts, host)
			}
		case "group", "weight":
			m.weighted = true
		}
	}
	return m
}

// server is what a server says about itself.
type server struct {
	addr, at string // as it is named, and as it was reached
	silent   bool   // it did not answer, for err
	idle     bool   // it serves nobody
	err      error

	srvr, conf, mntr map[string]string // nil: not told
	most             int               // connections of one host, of which it has the most; -1: not told
	busiest          string            // that host
}

// question asks a server by four-letter words.
func (e *ensemble) question(ctx context.Context, addr string) server {
	ctx, cancel := e.within(ctx)
	defer cancel()
	s := server{addr: addr, most: -1}
	o := e.connection(0)
	ask := func(word, between string) map[string]string {
		text, at, err := o.Word(ctx, addr, word)
		switch {
		case err == nil:
			s.at = at
			return fieldsOf(text, between)
		case errors.Is(err, zk.ErrNotListed):
			s.at = at
		case errors.Is(err, zk.ErrNotServing):
			s.idle, s.err = true, err
		default:
			s.silent, s.err = true, err
		}
		return nil
	}
	if s.srvr = ask("srvr", ": "); s.silent || s.idle {
		return s
	}
	if s.conf = ask("conf", "="); s.silent {
		return s
	}
	if s.mntr = ask("mntr", "\t"); s.silent {
		return s
	}
	if text, _, err := o.Word(ctx, addr, "cons"); err == nil {
		s.busiest, s.most = busiestOf(text)
	}
	return s
}

// fieldsOf reads lines of a name and a value.
func fieldsOf(text, between string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), between); ok {
			fields[name] = value
		}
	}
	return fields
}

// busiestOf returns the host that has the most connections, of lines such as "
// /10.0.0.5:39000[1](queued=0,…)".
func busiestOf(text string) (host string, most int) {
	count := map[string]int{}
	for line := range strings.Lines(text) {
		addr, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "/"), "[1]")
		addr, _, _ = strings.Cut(addr, "[0]")
		at, _, err := net.SplitHostPort(addr)
		if err != nil {
			continue
		}
		if count[at]++; count[at] > most {
			host, most = at, count[at]
		}
	}
	return host, most
}

// number returns one of the values that a server says, or 0.
func number(said map[string]string, name string) int64 {
	n, _ := strconv.ParseFloat(said[name], 64)
	return int64(n)
}

package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// served is what the servers of a run have done so far: those of Redis by
// their own count, a PostgreSQL an etcd or a ZooKeeper by the CPU time that it has used.
type served struct {
	servers  float64
	scripts  float64 // EVAL, EVALSHA, FCALL
	scripted float64 // microseconds that they took, their commands included
	commands float64 // those inside scripts included
	// Packets: what it read from a connection at once, and what it wrote to
	// one at once. Several commands that arrive together are one.
	received, sent float64
	cpu            float64 // seconds
}

func (s served) packets() float64 { return s.received + s.sent }

// look asks the servers of the run; a run without them has done nothing.
func (s *site) look() (served, error) {
	var all served
	for _, server := range s.redis {
		text, err := server.Do("INFO", "all")
		if err != nil {
			return served{}, fmt.Errorf("bench: ask the server what it did: %w", err)
		}
		one, err := parseServed(text)
		if err != nil {
			return served{}, err
		}
		all = all.and(one)
	}
	if s.postgres != nil {
		var err error
		all.cpu, err = familyTime(s.postgres.Pid())
		return all, err
	}
	if s.zookeeper != nil {
		var err error
		all.cpu, err = threadsTime(s.zookeeper.Pid())
		return all, err
	}
	if s.etcd != nil {
		var err error
		all.cpu, err = threadsTime(s.etcd.Pid())
		return all, err
	}
	return all, nil
}

func (s served) and(o served) served {
	return served{
		servers: s.servers + o.servers,
		scripts: s.scripts + o.scripts, scripted: s.scripted + o.scripted, commands: s.commands + o.commands,
		received: s.received + o.received, sent: s.sent + o.sent, cpu: s.cpu + o.cpu,
	}
}

// watch waits for the window to close and says what the servers did in it.
func (s *site) watch(b board) (served, error) {
	if len(s.redis) == 0 && s.postgres == nil && s.etcd == nil && s.zookeeper == nil {
		return served{}, nil
	}
	sleepUntil(b.Start.Load())
	before, err := s.look()
	if err != nil {
		return served{}, err
	}
	sleepUntil(b.End.Load())
	after, err := s.look()
	return after.since(before), err
}

// since is what the servers did between two looks, less the looking: the
// earlier one counts its INFO, its answer, and the end of its connection
// only after it was taken, the later one has counted its question.
func (s served) since(before served) served {
	return served{
		scripts:  s.scripts - before.scripts,
		scripted: s.scripted - before.scripted,
		commands: s.commands - before.commands - s.servers,
		received: s.received - before.received - 2*s.servers,
		sent:     s.sent - before.sent - s.servers,
		cpu:      s.cpu - before.cpu,
	}
}

// parseServed reads the answer to INFO.
func parseServed(text string) (served, error) {
	out := served{servers: 1}
	fields := map[string]*float64{
		"total_commands_processed": &out.commands,
		"total_reads_processed":    &out.received,
		"total_writes_processed":   &out.sent,
	}
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		var err error
		switch key {
		case "cmdstat_eval", "cmdstat_evalsha", "cmdstat_fcall":
			var calls, micros float64
			_, err = fmt.Sscanf(value, "calls=%f,usec=%f,", &calls, &micros)
			out.scripts += calls
			out.scripted += micros
		case "used_cpu_user", "used_cpu_sys":
			var seconds float64
			seconds, err = strconv.ParseFloat(value, 64)
			out.cpu += seconds
		default:
			if to := fields[key]; to != nil {
				*to, err = strconv.ParseFloat(value, 64)
				delete(fields, key)
			}
		}
		if err != nil {
			return served{}, fmt.Errorf("bench: the server says %q: %w", line, err)
		}
	}
	if len(fields) > 0 {
		return served{}, fmt.Errorf("bench: the server does not count %v", slices.Sorted(maps.Keys(fields)))
	}
	return out, nil
}

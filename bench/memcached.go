package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/interlock-go/interlock"
	_ "github.com/interlock-go/interlock/memcachedlock" // memcached:
)

// Names of contenders on memcached that goals refer to.
const (
	rawAdd        = "raw add + delete"
	oursMemcached = "Interlock memcachedlock"
)

func memcachedRows() []row {
	on := &stage{adapters: []string{"rawadd", "memcached"}}
	return []row{{
		name:    "memcached-free",
		title:   "memcached, free lock and unlock",
		options: fmt.Sprintf("one goroutine, nobody else; rounds of %d pairs in turn, all in one process and on one memcached on loopback; default options", roundPairs),
		reps:    60,
		stage:   on,
		metrics: []metric{pairMedian, pairSlow, cpuEach},
		contenders: []contender{
			{rawAdd, floor, stagedPair{on, "rawadd"}},
			{oursMemcached, ours, stagedPair{on, "memcached"}},
		},
		goals: []goal{{oursMemcached, pairMedian, atMost, 1.2, 1, rawAdd}},
	}}
}

func openMemcached(ctx context.Context, p place) (locker, error) {
	client, err := interlock.Open(ctx, "memcached://"+p.Memcached, &interlock.Options{TTL: p.TTL})
	return &interlocked{client: client}, err
}

// rawMemcached is the floor of a lock on memcached: add and delete, as people
// write it, over one connection that one goroutine has. It knows no owner, no
// version, no token and no renewal.
type rawMemcached struct {
	net.Conn
	r *bufio.Reader
}

func openRawMemcached(ctx context.Context, p place) (locker, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", p.Memcached)
	if err != nil {
		return nil, err
	}
	m := rawMemcached{c, bufio.NewReader(c)}
	if err := m.ask("verbosity 0\r\n", "OK\r\n"); err != nil { // servertest's is verbose
		return nil, errors.Join(err, c.Close())
	}
	return m, nil
}

var errHeld = errors.New("bench: the raw item is somebody else's")

func (m rawMemcached) ask(request, want string) error {
	if _, err := m.Write([]byte(request)); err != nil {
		return err
	}
	line, err := m.r.ReadSlice('\n')
	if err == nil && string(line) != want {
		err = errHeld
	}
	return err
}

func (m rawMemcached) mutex(name string) mutex { return rawItem{m, name} }

type rawItem struct {
	rawMemcached
	name string
}

func (i rawItem) lock(ctx context.Context) (func() error, error) {
	add := fmt.Sprintf("add %s 0 %d 6\r\nworker\r\n", i.name, int(rawTTL/time.Second))
	for {
		err := i.ask(add, "STORED\r\n")
		if errors.Is(err, errHeld) && ctx.Err() == nil {
			continue
		}
		return func() error { return i.ask("delete "+i.name+"\r\n", "DELETED\r\n") }, err
	}
}

func (m rawMemcached) close() error { return m.Close() }

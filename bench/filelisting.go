package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/filelock"
)

// fileListing is a list of who holds, by a process that has seen nothing yet:
// one name is held, and others were and have their records still.
type fileListing struct {
	old  int
	bare bool // their records are read, and nothing else
}

// lists is how many are measured.
const lists = 20

func (x fileListing) run(ctx context.Context, s scale) (_ sample, err error) {
	dir, err := os.MkdirTemp("", "interlock-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	store := filepath.Join(dir, "store")
	d, err := filelock.New(store, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close(ctx)) }()
	session, err := d.Open(ctx, driver.Spec{ID: driver.NewID(), TTL: time.Hour})
	if err != nil {
		return nil, err
	}
	hold := func(name string) (driver.Claim, error) {
		c := driver.Claim{Name: name, ID: driver.NewID(), Kind: driver.Mutex, Weight: driver.All, Limit: driver.All}
		if g, err := session.Acquire(ctx, c); err != nil || !g.Held {
			return c, fmt.Errorf("bench: held %v, %w", g.Held, err)
		}
		return c, nil
	}
	if _, err := hold(contestName); err != nil {
		return nil, err
	}
	for i := range x.old / s.shrink {
		c, err := hold("old/" + strconv.Itoa(i))
		if err != nil {
			return nil, err
		}
		if _, err := session.Release(ctx, c); err != nil {
			return nil, err
		}
	}
	var took []float64
	var read uint64
	for range lists {
		one := x.list
		if x.bare {
			one = x.read
		}
		start := time.Now()
		if read, err = one(ctx, store); err != nil {
			return nil, err
		}
		took = append(took, time.Since(start).Seconds()*1e3)
	}
	slices.Sort(took)
	return sample{latency: took[len(took)/2], recordReads: float64(read)}, nil
}

func (fileListing) list(ctx context.Context, store string) (uint64, error) {
	d, err := filelock.New(store, nil)
	if err != nil {
		return 0, err
	}
	lines, err := d.Lines(ctx, "")
	if len(lines) != 1 {
		err = errors.Join(err, fmt.Errorf("bench: %d lines", len(lines)))
	}
	return d.Stats().RecordReads, errors.Join(err, d.Close(ctx))
}

func (fileListing) read(_ context.Context, store string) (n uint64, err error) {
	folder := filepath.Join(store, "locks")
	files, err := os.ReadDir(folder)
	for _, f := range files {
		if _, err := os.ReadFile(filepath.Join(folder, f.Name())); err != nil {
			return 0, err
		}
		n++
	}
	return n, err
}

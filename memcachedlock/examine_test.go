package memcachedlock_test

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/examine/examinetest"
	"github.com/interlock-go/interlock/internal/memcache"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/internal/storetest"
	"github.com/interlock-go/interlock/memcachedlock"
)

// finds has the doctor look at servers. What is wrong with the version that is installed here is
// wrong everywhere.
func finds(t *testing.T, what, url string, want examinetest.Levels, o ...interlock.DoctorOption) *interlock.Report {
	t.Helper()
	all := examinetest.Levels{}
	maps.Copy(all, want)
	if memcachedlock.Faulty(installed(t, url)) != "" {
		all["version"] = examinetest.Warn
	}
	// A TTL with which a busy machine is no slow store.
	c, err := interlock.Open(t.Context(), url, &interlock.Options{TTL: time.Minute, Grace: 20 * time.Second})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	defer c.Close()
	return examinetest.Finds(t, what, c, all, o...)
}

// installed is the version of the first server of a URL.
func installed(t *testing.T, url string) string {
	t.Helper()
	addr, _, _ := strings.Cut(strings.TrimPrefix(url, "memcached://"), ",")
	return strings.TrimSpace(strings.TrimPrefix(command(t, addr, "version"), "VERSION"))
}

// A server that is well gives no finding, with leave to write neither, and nothing stays of it.
func TestDoctor_Well(t *testing.T) {
	t.Parallel()
	one, two := servertest.Memcached(t), servertest.Memcached(t)
	finds(t, "a server that is well", one.URL(), nil)
	finds(t, "two servers", fmt.Sprintf("memcached://%s,%s", one.Addr(), two.Addr()), nil)
	r := finds(t, "with leave to write", one.URL(), nil, interlock.Writing())
	if f := r.Findings[len(r.Findings)-1]; f.Title != "rehearsal" || f.Level != driver.LevelOK {
		t.Errorf("%+v, want a rehearsal", f)
	}
	if got := command(t, one.Addr(), "lru_crawler metadump hash"); got != "END\r\n" {
		t.Errorf("%q stays", got)
	}
}

// Each way to start a server that hurts has its own finding, and no other.
func TestDoctor_HowItWasStarted(t *testing.T) {
	t.Parallel()
	port, err := servertest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]examinetest.Levels{
		"-M":                        {"eviction": examinetest.Warn},
		"-I 2k -o slab_chunk_max=1": {"item size": examinetest.Warn},
		"-o idle_timeout=5":         {"idle connections": examinetest.Warn},
		"-o idle_timeout=60":        {},
		"-o no_lru_crawler":         {"crawler": examinetest.Warn, "names": examinetest.Skip},
		fmt.Sprint("-U ", port):     {"udp": examinetest.Warn},
		"-m 2048 -c 100 -F -B auto": {},
	} {
		finds(t, args, servertest.Memcached(t, strings.Fields(args)...).URL(), want)
	}
}

// What has happened to a server is told.
func TestDoctor_WhatHasHappened(t *testing.T) {
	t.Parallel()
	t.Run("flushed", func(t *testing.T) {
		t.Parallel()
		s := servertest.Memcached(t)
		if got := command(t, s.Addr(), "flush_all"); got != "OK\r\n" {
			t.Fatal(got)
		}
		finds(t, "it was flushed", s.URL(), examinetest.Levels{"flushes": examinetest.Warn})
	})
	t.Run("full", func(t *testing.T) {
		t.Parallel()
		s := servertest.Memcached(t, "-m", "4")
		r := beside(t, s.Addr())
		about := func(what string) int64 {
			a, err := r.About(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			n, err := strconv.ParseInt(a.Stats[what], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		i := 0
		fill := func(until func() bool) {
			for ; !until(); i++ {
				if i > 1e4 {
					t.Fatal("it is never full")
				}
				r.says(memcache.Add(fmt.Sprintf("ballast-%07d", i), make([]byte, 8800), 0)) // of which a page has a whole number
			}
		}
		fill(func() bool { return i%16 == 0 && about("bytes")*100 > about("limit_maxbytes")*82 })
		finds(t, "it is nearly full", s.URL(), examinetest.Levels{"memory": examinetest.Warn})
		fill(func() bool { return i%16 == 0 && about("evictions") > 0 })
		finds(t, "it evicts", s.URL(), examinetest.Levels{"eviction": examinetest.Warn})
	})
	t.Run("crowded", func(t *testing.T) {
		t.Parallel()
		s := servertest.Memcached(t, "-c", "64", "-t", "1")
		for range 47 {
			c, err := net.Dial("tcp", s.Addr())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
		}
		finds(t, "it has hardly room for connections", s.URL(), examinetest.Levels{"connections": examinetest.Warn})
	})
	t.Run("clock", func(t *testing.T) {
		t.Parallel()
		s, err := servertest.StartMemcached(t.Context(), servertest.Options{Clock: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		if err := errors.Join(s.Step(time.Hour), s.Kill(), s.Restart(t.Context())); err != nil {
			t.Fatal(err)
		}
		finds(t, "it was started by a clock that was wrong", s.URL(), examinetest.Levels{"clock": examinetest.Warn})
	})
}

// Of several servers one that does not answer is a finding, and the others are looked at; when none
// answers that is no finding.
func TestDoctor_OneOfTwoServersIsGone(t *testing.T) {
	t.Parallel()
	servers := []*servertest.Server{servertest.Memcached(t), servertest.Memcached(t)}
	slices.SortFunc(servers, func(a, b *servertest.Server) int { return strings.Compare(a.Addr(), b.Addr()) })
	url := fmt.Sprintf("memcached://%s,%s", servers[0].Addr(), servers[1].Addr())
	if err := servers[1].Kill(); err != nil {
		t.Fatal(err)
	}
	r := finds(t, "one of two is gone", url, examinetest.Levels{"answers": examinetest.Bad, "names": examinetest.Skip})
	for _, f := range r.Of(driver.LevelBad) {
		if f.Server != servers[1].Addr() {
			t.Errorf("%+v, want that of %s", f, servers[1])
		}
	}
	d := storetest.Opened(t, url).(driver.Examiner)
	if err := servers[0].Kill(); err != nil {
		t.Fatal(err)
	}
	if found, err := d.Examine(t.Context(), driver.Exam{}); !errors.Is(err, driver.ErrNotSent) || len(found) > 0 {
		t.Errorf("%+v, %v; want that nobody answers", found, err)
	}
}

// Only the versions that have a fault are told of it.
func TestFaulty(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{"1.6.0": "CVE-2020-22570", "1.6.2": "CVE-2020-22570", "1.6.3": "cut off", "1.6.25": "cut off", "1.6.26": "", "1.7.0": "", "1.6.x": "", "": ""} {
		if got := memcachedlock.Faulty(version); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", version, got, want)
		}
	}
}

package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/redisconn"
	"github.com/interlock-go/interlock/redisconn/goredis"
	"github.com/interlock-go/interlock/redislock"
)

// The rights of a user who locks are exactly those that it needs: with all of them everything
// works, and without any one of them something does not.
func TestACL_IsExact(t *testing.T) {
	t.Parallel()
	for _, functions := range []bool{false, true} {
		t.Run(fmt.Sprintf("functions=%t", functions), func(t *testing.T) {
			t.Parallel()
			s := servertest.Redis(t, redistest.Durable...)
			s.MustDo(t, "FUNCTION", "LOAD", redislock.Library())
			o := redislock.Options{Functions: functions}
			rights := strings.Fields(redislock.ACL(o, "a/*"))
			if err := everything(t, s, o, rights); err != nil {
				t.Errorf("with %q: %v", rights, err)
			}
			all := strings.Fields(redislock.ACL(o, "b", "*", "c"))
			if err := everything(t, s, o, all); err != nil {
				t.Errorf("with %q: %v", all, err)
			}
			for i, right := range rights {
				if testing.Short() {
					break // what fails without one of them waits for it: make proof
				}
				if !strings.ContainsAny(right[:1], "+~&") || right == "+ping" || right == "+pubsub|numsub" || right == "+exists" {
					continue // it takes rights away, or see TestACL_Ping, or only a waiter that has died stays then, or a list costs more
				}
				t.Run("without "+right, func(t *testing.T) {
					err := everything(t, s, o, append(append([]string{}, rights[:i]...), rights[i+1:]...))
					t.Logf("%v", err)
					if err == nil {
						t.Errorf("everything works without %s", right)
					}
				})
			}
		})
	}
}

// White space in a pattern gives no further right.
func TestACL_APatternIsOneWord(t *testing.T) {
	t.Parallel()
	s := servertest.Redis(t)
	rights := strings.Fields(redislock.ACL(redislock.Options{}, "a b", "c ~*"))
	if slices.Contains(rights, "~*") {
		t.Fatalf("a pattern with white space gives a right to all keys: %q", rights)
	}
	s.MustDo(t, append([]string{"ACL", "SETUSER", "locker", "reset", "on", ">pw"}, rights...)...)
	client := open(t, "redis://locker:pw@"+s.Addr(), ttl(time.Minute))
	release(t, hold(t, client.Mutex("a b")))
	if _, err := client.Mutex("other").TryLock(t.Context()); !errors.Is(err, driver.ErrRefused) {
		t.Errorf("a name that nobody gave a right to: %v, want a refusal", err)
	}
}

// A right that is missing is said, where asking again would not help at once; and what a script did
// before it met the right that it lacks does not stay.
func TestACL_WhatIsMissingIsSaid(t *testing.T) {
	if testing.Short() {
		t.Skip("a server for each right: make proof")
	}
	t.Parallel()
	for _, right := range []string{"+evalsha", "+incrby", "+rpush", "+subscribe", "&il:push:*", "~a/*", "~il:{*}:line:a/*"} {
		t.Run(right, func(t *testing.T) {
			t.Parallel()
			s := servertest.Redis(t)
			rights := slices.DeleteFunc(strings.Fields(redislock.ACL(redislock.Options{}, "a/*")), func(r string) bool { return r == right })
			s.MustDo(t, append([]string{"ACL", "SETUSER", "locker", "on", ">" + secret}, rights...)...)
			s.MustDo(t, "SET", "a/held", "theirs")
			client := open(t, "redis://locker:"+secret+"@"+s.Addr(), &interlock.Options{TTL: ample, Patience: time.Second})
			_, free := client.Mutex("a/free").Lock(t.Context())
			_, held := client.Mutex("a/held", interlock.Wait(2*time.Second)).Lock(t.Context())
			if free == nil && errors.Is(held, interlock.ErrHeld) {
				t.Fatal("everything works")
			}
			for _, err := range []error{free, held} {
				if err == nil || errors.Is(err, interlock.ErrHeld) {
					continue
				}
				if !strings.Contains(err.Error(), "lacks a right") {
					t.Errorf("%v: want that the user lacks a right", err)
				}
				if inScript := redisconn.InScript(err); errors.Is(err, driver.ErrRefused) == inScript {
					t.Errorf("%v: refused %t", err, !inScript)
				}
			}
			if free != nil {
				eventually(t, "nothing stays", func() bool { return s.MustDo(t, "EXISTS", "a/free") == "0" })
			}
		})
	}
}

// A subscription of go-redis that has been silent is kept by a ping, which is a right as well.
func TestACL_Ping(t *testing.T) {
	if testing.Short() {
		t.Skip("connections that are silent for seconds: make proof")
	}
	t.Parallel()
	s := servertest.Redis(t)
	for _, mayPing := range []bool{true, false} {
		rights := strings.Fields(redislock.ACL(redislock.Options{}, "a/*"))
		if !mayPing {
			rights = slices.DeleteFunc(rights, func(r string) bool { return r == "+ping" })
		}
		user := fmt.Sprint("locker", mayPing)
		s.MustDo(t, append([]string{"ACL", "SETUSER", user, "on", ">pw"}, rights...)...)
		client := redis.NewClient(&redis.Options{Addr: s.Addr(), Username: user, Password: "pw", MaxRetries: -1})
		t.Cleanup(func() { _ = client.Close() })
		conn, err := goredis.Conn(client)
		if err != nil {
			t.Fatal(err)
		}
		sub, err := conn.Subscribe(t.Context(), "a/x", "il:push:x", func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(sub.Close)
		t.Run(fmt.Sprint("mayPing=", mayPing), func(t *testing.T) {
			t.Parallel()
			timer := time.NewTimer(2*redisconn.DefaultKeepAlive + time.Second)
			defer timer.Stop()
			select {
			case <-sub.Done:
				if mayPing {
					t.Error("a silent subscription ends")
				}
			case <-timer.C:
				if !mayPing {
					t.Error("a silent subscription is kept without the right to ping")
				}
			}
		})
	}
}

// everything does with locks what can be done, as a user with these rights.
func everything(t *testing.T, s *servertest.Server, o redislock.Options, rights []string) (err error) {
	t.Helper()
	s.MustDo(t, "FLUSHALL")
	s.MustDo(t, "SCRIPT", "FLUSH")
	s.MustDo(t, append([]string{"ACL", "SETUSER", "locker", "reset", "on", ">pw"}, rights...)...)
	admin := func(words ...string) {
		as(t, redisconn.Config{Addrs: []string{s.Addr()}, DB: 1}, words)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	logs := &journal{}
	o.Logger = slog.New(slog.NewTextHandler(logs, nil))
	var parties [2]driver.Session
	var d *redislock.Driver
	for i := range parties {
		conn, err := redisconn.Open(ctx, redisconn.Config{Addrs: []string{s.Addr()}, Username: "locker", Password: "pw", DB: 1, ClientName: "locker"})
		if err != nil {
			return err
		}
		defer conn.Close()
		if d, err = redislock.New(ctx, conn, &o); err != nil {
			return err
		}
		defer func() {
			over, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_ = d.Close(over)
		}()
		if parties[i], err = d.Open(ctx, driver.Spec{ID: driver.NewID(), TTL: 8 * time.Second}); err != nil {
			return err
		}
	}
	if text := logs.String(); strings.Contains(text, "INFO") {
		return errors.New(text)
	}
	p := play{ctx, parties[0], parties[1], d, admin}
	return first(p.mutex, p.readers, p.permits, p.requeue, p.breaking, p.foreign, p.vanished, p.evicted)
}

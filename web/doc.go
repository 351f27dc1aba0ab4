// Package web shows who holds and who waits, on pages and as JSON, and lets those break a claim who
// may: the page of a lock's store for the people who run it. [Handler] is an http.Handler, to be
// mounted in a server that a team has already.
//
// A complete program:
//
//	package main
//
//	import (
//		"context"
//		"log"
//		"net/http"
//		"os"
//		"time"
//
//		"github.com/interlock-go/interlock/driver"
//		_ "github.com/interlock-go/interlock/redislock"
//		"github.com/interlock-go/interlock/web"
//	)
//
//	func main() {
//		ctx := context.Background()
//		url := os.Getenv("LOCKS") // redis://:secret@10.0.0.5:6379/0
//		store, err := driver.OpenURL(ctx, url)
//		if err != nil {
//			log.Fatal(err)
//		}
//		defer store.Close(ctx)
//
//		locks, err := web.New([]web.Store{{Name: "main", URL: url, Driver: store}}, &web.Options{
//			Prefix:    "/locks",
//			Hosts:     []string{"admin.example.org"},
//			Authorize: authorize,
//		})
//		if err != nil {
//			log.Fatal(err)
//		}
//		defer locks.Close()
//
//		mux := http.NewServeMux()
//		mux.Handle("/locks/", locks)
//		server := &http.Server{Addr: "127.0.0.1:8080", Handler: mux, ReadHeaderTimeout: 5 * time.Second}
//		log.Fatal(server.ListenAndServe())
//	}
//
//	// authorize says who asks. Here a proxy in front has found out, and lets nobody else reach this server.
//	func authorize(r *http.Request) (web.Principal, error) {
//		switch user := r.Header.Get("X-Forwarded-User"); user {
//		case "":
//			return web.Principal{}, web.ErrUnauthenticated
//		case "ops":
//			return web.Principal{Name: user, Read: []string{""}, Break: []string{""}}, nil // every name
//		default:
//			return web.Principal{Name: user, Read: []string{"coupons/"}}, nil // what begins so
//		}
//	}
//
// # What is asked of the store
//
// Nothing while nobody looks. The list of names is read once for all who look, at most every second
// or ten times as long as that took; a name that somebody has opened is followed by the store's own
// notices, once for all. However many look, and however slowly they read, the store is asked the
// same.
//
// # Who may do what
//
// Without [Options].Authorize a handler is read-only. With it each [Principal] reads and breaks the
// names that begin with its prefixes. Requests from pages of other sites are refused, by their
// origin and by the Host that they name: see [Options].Hosts. No answer and no log has a secret of
// a claim: an id and a token allow nobody to release it, and to break it only here, with the right
// to do so.
package web

// Package interlockcertmagic gives CertMagic locks of Interlock, over whatever keeps its certificates: a fleet obtains and
// renews each certificate once, and a machine that dies is followed at once when its lease is over, not when a file has become
// old. A [Storage] is a certmagic.Storage:
//
//	package main
//
//	import (
//		"context"
//		"log"
//		"net/http"
//
//		"github.com/caddyserver/certmagic"
//
//		"github.com/interlock-go/interlock"
//		interlockcertmagic "github.com/interlock-go/interlock/contrib/certmagic"
//		_ "github.com/interlock-go/interlock/redislock"
//	)
//
//	func main() {
//		client, err := interlock.Open(context.Background(), "redis://localhost", nil)
//		if err != nil {
//			log.Fatal(err)
//		}
//		defer client.Close()
//		files := &certmagic.FileStorage{Path: "/mnt/shared/certmagic"} // what all machines see
//		certmagic.Default.Storage = interlockcertmagic.New(files, client)
//		log.Fatal(certmagic.HTTPS([]string{"example.com"}, http.DefaultServeMux))
//	}
//
// # What is kept, and what is not
//
// CertMagic does not hand a lock's loss to the work under it: the one that lost goes on, beside the next. Before each new
// attempt it asks for a renewal of the lock's lease, which is refused then, so it obtains nothing more; and its Unlock says
// that the lock was lost, which CertMagic logs. CertMagic is made for that: what two machines obtain at once are two
// certificates, of which the storage keeps one. No token guards the storage.
package interlockcertmagic

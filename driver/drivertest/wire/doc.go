// Package wire is a link that can fail: a TCP proxy in front of a server that stalls one way or
// both, delays, drops, cuts, silences or holds single connections, and counts, for the tests of
// programs that talk to a server.
//
//	package main
//
//	import (
//		"bufio"
//		"context"
//		"fmt"
//		"io"
//		"log"
//		"net"
//		"time"
//
//		"github.com/interlock-go/interlock/driver/drivertest/wire"
//	)
//
//	func main() {
//		server, err := net.Listen("tcp", "127.0.0.1:0") // it answers each line with itself
//		if err != nil {
//			log.Fatal(err)
//		}
//		go func() {
//			for {
//				c, err := server.Accept()
//				if err != nil {
//					return
//				}
//				go func() { _, _ = io.Copy(c, c) }()
//			}
//		}()
//		defer server.Close()
//
//		w, err := wire.Listen(context.Background(), server.Addr().String())
//		if err != nil {
//			log.Fatal(err)
//		}
//		defer w.Close()
//		client, err := net.Dial("tcp", w.Addr()) // instead of the server's address
//		if err != nil {
//			log.Fatal(err)
//		}
//		defer client.Close()
//
//		heal := w.Stall(wire.Replies) // requests arrive and are carried out, replies do not come back
//		fmt.Fprintln(client, "hello")
//		for w.Count().Replies.Held == 0 {
//			time.Sleep(time.Millisecond)
//		}
//		fmt.Println("replies so far:", w.Count().Replies.Packets)
//		heal()
//		reply, err := bufio.NewReader(client).ReadString('\n')
//		fmt.Print(reply)
//		if err != nil {
//			log.Fatal(err)
//		}
//		w.Cut() // both ends see a reset
//		_, err = client.Read(make([]byte, 1))
//		fmt.Println("cut:", err != nil)
//	}
//
// It prints
//
//	replies so far: 0
//	hello
//	cut: true
//
// In a test [New] closes the wire by itself. Package links makes of wires what the suite's laws ask
// a harness for.
//
// A wire knows no product. Drop sees packets as they come; only Filter reads RESP, the protocol of
// Redis, so that single frames can be taken out of a stream. All errors of the package begin with
// "wire: ".
package wire

package interlockcertmagic_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/caddyserver/certmagic"

	"github.com/interlock-go/interlock"
	interlockcertmagic "github.com/interlock-go/interlock/contrib/certmagic"
	"github.com/interlock-go/interlock/memlock"
)

func Example() {
	client, err := interlock.New(memlock.New(), nil) // or Open, by the URL of the fleet's store
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	dir, err := os.MkdirTemp("", "certmagic")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	storage := interlockcertmagic.New(&certmagic.FileStorage{Path: dir}, client)
	ctx := context.Background()
	fmt.Println(storage.Lock(ctx, "issue_cert_example.com"))
	fmt.Println(storage.TryLock(ctx, "issue_cert_example.com"))
	fmt.Println(storage.Unlock(ctx, "issue_cert_example.com"))
	// Output:
	// <nil>
	// false <nil>
	// <nil>
}

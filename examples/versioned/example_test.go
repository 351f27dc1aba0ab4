package versioned_test

import (
	"context"
	"fmt"
	"log"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/examples/versioned"
)

// Whoever has a driver has everything else.
func Example() {
	ctx := context.Background()
	table := new(versioned.Memory) // a table of one's database, which several processes share
	client, err := interlock.New(versioned.New(table), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	err = client.Mutex("coupons/42").Do(ctx, func(ctx context.Context) error {
		fmt.Println("sold with the token", interlock.Fence(ctx, "coupons/42"))
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: sold with the token 1
}

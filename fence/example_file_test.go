//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package fence_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/interlock-go/interlock/fence"
)

// A configuration file that only the latest holder can change. The tokens would be those of two leases.
func ExampleFile() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "fence")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	file := fence.NewFile(filepath.Join(dir, "hosts"), 0o644)
	add := func(host string) func([]byte) ([]byte, error) {
		return func(content []byte) ([]byte, error) { return fmt.Appendln(content, host), nil }
	}

	fmt.Println(file.Update(ctx, 33, add("alpha")))
	fmt.Println(file.Update(ctx, 34, add("beta")))
	err = file.Update(ctx, 33, add("gamma")) // the first holder wakes, too late
	fmt.Println(errors.Is(err, fence.ErrStale))

	content, err := file.Read()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(string(content))
	// Output:
	// <nil>
	// <nil>
	// true
	// alpha
	// beta
}

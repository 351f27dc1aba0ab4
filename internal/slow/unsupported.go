//go:build !linux

package main

import (
	"fmt"
	"os"
	"runtime"
)

func main() {
	fmt.Fprintln(os.Stderr, "slow: threads cannot be kept on cores by", runtime.GOOS+": want Linux")
	os.Exit(1)
}

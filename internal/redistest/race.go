//go:build race

package redistest

import "github.com/interlock-go/interlock/internal/redislink"

// A test of fifty contenders for five masters has 700 connections, and of the room that each keeps
// for a thousand commands the race detector makes a megabyte. Few tests have a hundred commands
// without an answer on one of them, and those have servers that answer.
func init() { redislink.RingScale = 7 }

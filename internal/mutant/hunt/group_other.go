//go:build !unix

package main

import "os/exec"

// Without process groups only the test itself is ended.
func endWithGroup(*exec.Cmd) {}

func killGroup(*exec.Cmd) {}

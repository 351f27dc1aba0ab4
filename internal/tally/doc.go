// Command tally reads what `go test -json` prints and tells it in short: how each package ended, everything that failing
// tests said, and every trial that was void, which passing tests say too:
//
//	go test -json ./... | tally -times FILE -voids FILE
//
// It adds a line for each package to the one file, with the seconds that it took, and one for each void trial to the other.
package main

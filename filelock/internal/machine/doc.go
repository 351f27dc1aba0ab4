// Package machine is what the embedded store asks the system for: clocks that count suspended time, flock(2), memory
// shared with other processes through files, and what a file system is. Each function is the same on Linux and macOS;
// it says where the answer of one of them is poorer.
package machine

//go:build linux || darwin

// Package workers has what processes of one program share that contend for a lock: memory in files,
// a board that sees two holders at once, and in package monotonic a clock.
package workers

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Map maps the file at path, which it makes if it is missing, as a T that all processes share which
// map the file. T must have no pointers. What is written by an atomic store survives the process.
func Map[T any](path string) (*T, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size := int(unsafe.Sizeof(*new(T)))
	if err := f.Truncate(int64(size)); err != nil {
		return nil, err
	}
	memory, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("workers: map %s: %w", path, err)
	}
	return (*T)(unsafe.Pointer(&memory[0])), nil
}

// Unmap ends what Map began. The memory must not be used any more.
func Unmap[T any](p *T) error {
	return unix.Munmap(unsafe.Slice((*byte)(unsafe.Pointer(p)), unsafe.Sizeof(*p)))
}

//go:build linux || darwin

package machine

import (
	"os"
	"runtime/debug"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Mapped is a part of a file, mostly its first page, in memory that all processes share: its words are read and changed by atomic
// instructions, for which nobody waits.
//
// Whoever may write to a store can cut its files short. A page that is not in its file any more faults when it is touched,
// which ends a Go program, and all the locks in it. So the page is touched in touch alone, where a fault is an answer.
type Mapped struct{ Page []byte }

// Map maps size bytes of f from begin on, which both are multiples of a page.
func Map(f *os.File, begin int64, size int) (Mapped, error) {
	page, err := unix.Mmap(int(f.Fd()), begin, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	return Mapped{page}, err
}

// Touch runs do, which may use the page, and reports whether the page was there all the time. It is cheap enough for
// every operation: two stores and a deferred call.
func (m Mapped) Touch(do func()) (there bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil && !m.faulted(p) {
			panic(p)
		}
	}()
	do()
	return true
}

// faulted reports whether a panic is that of a fault in the page.
func (m Mapped) faulted(p any) bool {
	fault, ok := p.(interface{ Addr() uintptr })
	if !ok || len(m.Page) == 0 {
		return false
	}
	begin := uintptr(unsafe.Pointer(&m.Page[0]))
	return fault.Addr() >= begin && fault.Addr() < begin+uintptr(len(m.Page))
}

// Word returns one of the page's words, to be used within touch.
func (m Mapped) Word(at int) *atomic.Uint64 { return (*atomic.Uint64)(unsafe.Pointer(&m.Page[at])) }

// Unmap ends the mapping. Nothing of m may be used afterwards.
func (m Mapped) Unmap() error { return unix.Munmap(m.Page) }

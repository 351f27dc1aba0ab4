package serve

import (
	"io/fs"
	"syscall"
)

// inode returns what tells a file from one that was moved to its place.
func inode(info fs.FileInfo) any {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Ino
	}
	return 0
}

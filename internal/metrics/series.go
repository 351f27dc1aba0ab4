package metrics

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"
)

// Other is the value of the label name for the locks that have none of their own, and mostNames is how many values there may be beside it.
const (
	Other     = "other"
	mostNames = 100
)

// Series has what is measured under each value of the label name, made when the value is first seen. It is safe for concurrent use.
type Series[T any] struct {
	begin func(name string) *T

	// The map is never changed but replaced, so that it is read without a lock.
	named atomic.Pointer[map[string]*T]
	mu    sync.Mutex // for replacing it
}

// NewSeries returns a Series without values. begin makes what is measured under one; calls of it follow each other. Its name is valid UTF-8, as
// a label must be.
func NewSeries[T any](begin func(name string) *T) *Series[T] {
	s := &Series[T]{begin: begin}
	s.named.Store(&map[string]*T{})
	return s
}

// At returns what is measured under this value, or under [Other] when there are too many.
func (s *Series[T]) At(name string) *T {
	if t := (*s.named.Load())[name]; t != nil {
		return t
	}
	return s.first(name)
}

// first is At for a value that was not seen before.
func (s *Series[T]) first(name string) *T {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := *s.named.Load()
	if t := all[name]; t != nil { // another goroutine was faster, perhaps with the last name that there may be
		return t
	}
	others := len(all)
	if all[Other] != nil {
		others--
	}
	if others >= mostNames {
		if name = Other; all[name] != nil {
			return all[name]
		}
	}
	t := s.begin(strings.ToValidUTF8(name, "\uFFFD"))
	all = maps.Clone(all)
	all[name] = t
	s.named.Store(&all)
	return t
}

package serve

import (
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"
)

// lookAgain is the time between two looks at watched files, at least.
const lookAgain = time.Second

// watched is a value that is made of some files, and made again when one of them changes. If that
// fails the last value stays: a file that is half written must lock nobody out.
type watched[T any] struct {
	files []string
	read  func() (T, error)
	log   *slog.Logger
	what  string // for the log

	mu     sync.Mutex
	looked time.Time
	signs  []sign
	made   T
}

// sign differs after a change of a file.
type sign struct {
	modified time.Time
	size     int64
	inode    any // of the system, comparable; nil for a file that is not there
}

// watch makes the first T, or says why not.
func watch[T any](log *slog.Logger, what string, read func() (T, error), files ...string) (*watched[T], error) {
	w := &watched[T]{files: files, read: read, log: log, what: what, looked: time.Now()}
	w.signs = w.look() // before the files are read: a change in between is seen later
	made, err := read()
	if err != nil {
		return nil, err
	}
	w.made = made
	return w, nil
}

// current returns the value of the files, as they were a second ago at most.
func (w *watched[T]) current() T {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := time.Now(); now.Sub(w.looked) >= lookAgain {
		w.looked = now
		if signs := w.look(); !slices.Equal(signs, w.signs) {
			w.again(signs)
		}
	}
	return w.made
}

// reload reads the files, whether they have changed or not.
func (w *watched[T]) reload() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.again(w.look())
}

// again makes the value again. A file that is wrong is logged once, until it changes. Called under
// mu.
func (w *watched[T]) again(signs []sign) {
	w.signs = signs
	made, err := w.read()
	if err != nil {
		w.log.Error("what was read before is still used", "what", w.what, "error", err)
		return
	}
	w.made = made
	w.log.Info("read again", "what", w.what)
}

// look returns the signs of the files.
func (w *watched[T]) look() (signs []sign) {
	for _, name := range w.files {
		s := sign{}
		if info, err := os.Stat(name); err == nil {
			s = sign{info.ModTime(), info.Size(), inode(info)}
		}
		signs = append(signs, s)
	}
	return signs
}

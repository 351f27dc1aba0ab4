package process

import (
	"bytes"
	"sync"
)

// journal keeps the end of what a process writes. It closes ready when a line contains mark.
type journal struct {
	ready chan struct{} // closed at the first line that contains mark

	mu   sync.Mutex
	mark []byte // nil when it has been seen
	text []byte
	line int // where in text the unfinished line begins, while the mark has not been seen
}

// journalSize bounds what is kept, in bytes.
const journalSize = 64 << 10

func newJournal(mark string) *journal {
	return &journal{ready: make(chan struct{}), mark: []byte(mark)}
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.text = append(j.text, b...)
	if j.mark != nil {
		j.find()
	}
	if over := len(j.text) - journalSize; over > 0 && j.mark == nil {
		j.text = append(j.text[:0], j.text[over:]...)
	}
	return len(b), nil
}

// find looks for the mark in the lines that are complete. The caller holds mu.
func (j *journal) find() {
	for {
		end := bytes.IndexByte(j.text[j.line:], '\n')
		if end < 0 {
			return
		}
		line := j.text[j.line : j.line+end]
		j.line += end + 1
		if bytes.Contains(line, j.mark) {
			close(j.ready)
			j.mark = nil
			return
		}
	}
}

// String returns what is kept.
func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return string(j.text)
}

package fence

import "sync"

// A Mark remembers the highest token that one resource of this process has seen. Its zero value has seen none and is
// ready for use; it must not be copied after first use. All methods may be called concurrently.
//
// A Mark forgets with the process. It guards what is forgotten then too: a cache, a device, a connection. What
// outlives the process needs a mark that does, kept beside the data: [File], [Table].
type Mark struct {
	mu      sync.Mutex
	highest uint64
}

// Claim stores token as the highest seen. From then on every smaller token is refused, so what the caller reads
// afterwards cannot be changed by an earlier holder. Its errors match [ErrStale], [ErrNoToken], [ErrRange].
func (m *Mark) Claim(token uint64) error {
	return m.Do(token, func() error { return nil })
}

// Do claims token and runs write in the same atomic step: no other Claim or Do of the mark runs meanwhile, so write
// must be short and must not use the mark. It returns what write returned; if the token is refused (errors as of
// [Mark.Claim]) write does not run. The claim stays even if write fails or panics.
func (m *Mark) Do(token uint64, write func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := Check("", m.highest, token); err != nil {
		return err
	}
	m.highest = token
	return write()
}

// Highest returns the highest token seen, 0 if none was.
func (m *Mark) Highest() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.highest
}

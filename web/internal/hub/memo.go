package hub

import "sync"

// mostKept is how many values a memo keeps: different viewers may see different parts of a list.
const mostKept = 64

// Memo keeps what was made of a state, so that it is made once for all who look at it.
type Memo struct {
	mu   sync.Mutex
	kept map[string]any
}

// Once returns the value that m keeps under key, or makes one and keeps it. While one is made other
// callers wait, since they would do the same work. An error is not kept.
func Once[V any](m *Memo, key string, makes func() (V, error)) (V, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v, ok := m.kept[key].(V); ok {
		return v, nil
	}
	v, err := makes()
	if err != nil {
		return v, err
	}
	if m.kept == nil {
		m.kept = map[string]any{}
	}
	if len(m.kept) < mostKept {
		m.kept[key] = v
	}
	return v, nil
}

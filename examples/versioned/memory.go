package versioned

import (
	"context"
	"sync"
)

// Memory is a [Table] in this process, for tests. Its zero value is empty.
type Memory struct {
	mu   sync.Mutex
	rows map[string]row
}

type row struct {
	value   []byte
	version int64
}

// Load implements [Table].
func (m *Memory) Load(ctx context.Context, name string) (value []byte, version int64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.rows[name]
	return r.value, r.version, ctx.Err()
}

// CompareAndSwap implements [Table].
func (m *Memory) CompareAndSwap(ctx context.Context, name string, value []byte, version int64) (swapped bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil || m.rows[name].version != version {
		return false, err
	}
	if m.rows == nil {
		m.rows = map[string]row{}
	}
	m.rows[name] = row{value, version + 1}
	return true, nil
}

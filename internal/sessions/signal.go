package sessions

// Signal wakes one receiver, or the next one. It has room for one value.
type Signal chan struct{}

// NewSignal returns a signal that wakes nobody yet.
func NewSignal() Signal { return make(Signal, 1) }

// Give wakes a receiver, and never blocks.
func (s Signal) Give() {
	select {
	case s <- struct{}{}:
	default:
	}
}

package sessions

// Signal wakes one who waits for it, or the next who does. It is made with room for one.
type Signal chan struct{}

// NewSignal returns a signal that was not given.
func NewSignal() Signal { return make(Signal, 1) }

// Give wakes, and never blocks.
func (s Signal) Give() {
	select {
	case s <- struct{}{}:
	default:
	}
}

package wire

// Counts is what has gone through a wire since it was opened.
type Counts struct {
	Connections int64 // accepted, and those of them
	Open        int64 // that are open now
	Requests    Flow
	Replies     Flow
}

// Flow counts one direction.
type Flow struct {
	Packets int64 // as the wire read them; the kernel may have joined some
	Bytes   int64
	Held    int64 // packets in the wire now, by a stall or a delay
	Dropped int64 // packets of which Drop or Filter took all or some
}

// Count returns the counts as of now. What a receiver has is counted.
func (w *Wire) Count() Counts {
	w.mu.Lock()
	c := Counts{Connections: w.opened, Open: int64(len(w.connections))}
	w.mu.Unlock()
	w.each(Requests, func(way *way) { c.Requests = way.flow })
	w.each(Replies, func(way *way) { c.Replies = way.flow })
	return c
}

func (w *way) hold(p packet) {
	if len(p.data) > 0 {
		w.mu.Lock()
		w.flow.Held++
		w.mu.Unlock()
	}
}

// lose takes back what hold counted, for a packet that will not be passed on.
func (w *way) lose(p packet) {
	if len(p.data) > 0 {
		w.mu.Lock()
		w.flow.Held--
		w.mu.Unlock()
	}
}

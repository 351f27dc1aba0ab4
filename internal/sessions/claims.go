package sessions

// Leaver is a claim that can be told that it is being released: as a rule, by the Departure that it embeds.
type Leaver interface {
	comparable

	// Depart says that from now on there are no requests but those of a Release.
	Depart()
}

// Claims are those that a session knows, by ID. The session's mutex is held for every method.
type Claims[C Leaver] map[string]C

// Of returns the claim of an ID, and makes one that nobody here knows.
func (all Claims[C]) Of(id string, fresh func() C) C {
	c, known := all[id]
	if !known {
		c = fresh()
		all[id] = c
	}
	return c
}

// Leaving returns the claim of an ID with no request but its Release from now on. One that nobody here knows is released all the same;
// where the session is over it is not taken in.
func (all Claims[C]) Leaving(id string, over bool, fresh func() C) C {
	c, known := all[id]
	if !known {
		c = fresh()
		if !over {
			all[id] = c
		}
	}
	c.Depart()
	return c
}

// AllLeaving returns all claims, with no request but their Release from now on.
func (all Claims[C]) AllLeaving() []C {
	claims := make([]C, 0, len(all))
	for _, c := range all {
		c.Depart()
		claims = append(claims, c)
	}
	return claims
}

// Forget drops a claim, unless another one has its ID. It reports whether it was there.
func (all Claims[C]) Forget(id string, c C) bool {
	known, ok := all[id]
	if !ok || known != c {
		return false
	}
	delete(all, id)
	return true
}

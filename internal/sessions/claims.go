package sessions

// Leaver is a claim that can be marked as leaving, mostly by the Departure that it embeds.
type Leaver interface {
	comparable

	// Depart marks the claim as leaving: no request but its Release is sent for it.
	Depart()
}

// Claims are those of a session, by ID. Every method needs the session's mutex to be held.
type Claims[C Leaver] map[string]C

// Of returns the claim of an ID, which it makes by fresh if there is none.
func (all Claims[C]) Of(id string, fresh func() C) C {
	c, known := all[id]
	if !known {
		c = fresh()
		all[id] = c
	}
	return c
}

// Leaving returns the claim of an ID, marked as leaving. If there is none it is made by fresh,
// since it may be released all the same, but not added if the session is over.
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

// AllLeaving returns all claims, marked as leaving.
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

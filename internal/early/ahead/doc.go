// Package ahead starts the guard of a run while the rest of the program is initialized: see package early. It imports nothing that is
// initialized late.
package ahead

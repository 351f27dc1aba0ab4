package redistest

import "testing"

// TryEndsWhileIdle tries each way to a server: a connection that has ended while it was idle never
// shows.
func TryEndsWhileIdle(t *testing.T, clients map[string]Opening) {
	t.Helper()
	for what, open := range clients {
		t.Run(what, func(t *testing.T) {
			if testing.Short() && what != "by URL" {
				t.Skip("another client, the same ends: make proof")
			}
			t.Parallel()
			tryIdleEnds(t, open)
			if testing.Short() {
				return // a server that closes what is idle takes its time
			}
			if what != "rueidis" { // sends a PING each second
				tryIdleTimeout(t, open)
			}
		})
	}
}

// TryEndsUnderWay tries each way to a server: nor does a connection that ends while a request is
// under way, except where nobody can say what became of a release.
func TryEndsUnderWay(t *testing.T, clients map[string]Opening) {
	t.Helper()
	for what, open := range clients {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			tryCuts(t, open)
			tryCutsInARow(t, open)
			tryCutAndReleased(t, open)
			tryCutWhileListening(t, open)
			tryLateArrival(t, open)
		})
	}
}

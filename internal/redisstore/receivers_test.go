package redisstore

import "testing"

func TestFindReturnsTheReceiverOfAMessage(t *testing.T) {
	var r Receivers[string]
	r.Add("id", "session")
	for payload, want := range map[string]Message{
		"h id 64 1":      {"h", "id", [2]int64{64, 1}},
		"x id":           {"x", "id", [2]int64{}},
		"g id 5 six 7 8": {"g", "id", [2]int64{5, 0}},
	} {
		if m, who, ok := r.Find(payload); !ok || who != "session" || m != want {
			t.Errorf("%q is %+v for %q (%v), want %+v", payload, m, who, ok, want)
		}
	}
	r.Remove("id")
	for _, payload := range []string{"", "h", "h id 64 1", "h other 64 1"} {
		if m, who, ok := r.Find(payload); ok {
			t.Errorf("%q is %+v for %q, want nobody", payload, m, who)
		}
	}
}

package redlock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// A program that opens masters while another one enlists them waits for it. The half of that is
// made by hand: four of five masters do not know the set yet. Where that lasts, it is not founding,
// and the program hears how many know.
func TestAProgramWaitsForTheOneThatFoundsTheSet(t *testing.T) {
	set := startMasters(t, 5)
	url := urlOf(addrs(set))
	if err := open(t, url).Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	move := func(from, to string) {
		for _, server := range set[1:] {
			for _, key := range []string{"member", "vote", "used"} {
				server.MustDo(t, "RENAME", "il:{redlock}:"+from+key, "il:{redlock}:"+to+key)
			}
		}
	}
	move("", "not yet ")
	opened := make(chan error, 1)
	go func() {
		d, err := driver.OpenURL(t.Context(), url)
		if err == nil {
			err = d.Close(t.Context())
		}
		opened <- err
	}()
	select {
	case err := <-opened:
		t.Errorf("with one of five that knows the set: %v, want to be waited for", err)
	case <-time.After(300 * time.Millisecond):
		move("not yet ", "")
		if err := <-opened; err != nil {
			t.Errorf("when all know the set: %v", err)
		}
		move("", "not yet ")
	}
	_, err := driver.OpenURL(t.Context(), url)
	if err == nil || !strings.Contains(err.Error(), "1 of 5 masters know that they are 5 masters") {
		t.Errorf("four masters were emptied by hand: %v, want to hear that one of five knows the set", err)
	}
}

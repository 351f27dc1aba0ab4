package servertest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// Somebody takes the port between our look and the server's: another one is chosen, unless the caller named it.
func TestStartTriesAnotherPort(t *testing.T) {
	t.Parallel()
	first := Redis(t)
	for _, asked := range []int{0, first.Port()} {
		starts := 0
		p := program{ready: redis.ready, args: func(s *Server) ([]string, error) {
			if starts++; starts == 1 {
				s.port = first.Port()
			}
			return redis.args(s)
		}}
		s, err := start(t.Context(), p, Options{Port: asked})
		if asked != 0 {
			if !errors.Is(err, errPortTaken) || starts != 1 {
				t.Errorf("port %d asked for: error %v after %d starts, want it to be taken", asked, err, starts)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if starts != 2 || s.Port() == first.Port() {
			t.Errorf("port %d after %d starts", s.Port(), starts)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestStartThatTakesTooLongSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	for want, start := range map[string]func(context.Context) error{
		`does not answer "cluster_state:ok"`: func(ctx context.Context) error {
			_, err := StartCluster(ctx, 1, 0, Options{}) // a master waits two seconds by itself
			return err
		},
		"was not up in time": func(ctx context.Context) error {
			_, err := start(ctx, program{ready: "no such line", args: redis.args}, Options{})
			return err
		},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if err := start(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one that is a timeout and says %q", err, want)
		}
	}
}

func TestJournalFindsTheLineAndKeepsTheEnd(t *testing.T) {
	t.Parallel()
	j := newJournal("is up")
	for _, part := range []string{"the server is not\n", "the server is u", "p", " now"} {
		if _, err := j.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
		select {
		case <-j.ready:
			t.Fatalf("ready after %q, in the middle of a line", part)
		default:
		}
	}
	if _, err := j.Write([]byte("\nand on\n")); err != nil {
		t.Fatal(err)
	}
	<-j.ready
	if got, want := j.String(), "the server is not\nthe server is up now\nand on\n"; got != want {
		t.Errorf("kept %q, want %q", got, want)
	}
	long := strings.Repeat("x", journalSize)
	for _, part := range []string{long, "the server is up\n"} {
		if _, err := j.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	if got := j.String(); len(got) != journalSize || !strings.HasSuffix(got, "xthe server is up\n") {
		t.Errorf("kept %d bytes of %d, ending in %q", len(got), journalSize, got[max(0, len(got)-30):])
	}
}

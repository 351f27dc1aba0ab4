package servertest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/servertest/internal/process"
)

// Somebody takes the port between our look and the server's: another one is chosen, unless the
// caller named it.
func TestStartTriesAnotherPort(t *testing.T) {
	t.Parallel()
	first := Redis(t)
	for _, asked := range []int{0, first.Port()} {
		starts := 0
		p := redisWith(func(s *Server) ([]string, error) {
			if starts++; starts == 1 {
				s.port = first.Port()
			}
			return redis.args(s)
		})
		s, err := start(t.Context(), p, Options{Port: asked})
		if asked != 0 {
			if !errors.Is(err, process.ErrPortTaken) || starts != 1 {
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

// Whichever step is too slow, nothing is left behind; TestMain would see the goroutines that wait
// for the servers.
func TestStartThatTakesTooLongIsUndone(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(context.Context, Options) error{
		"a server that does not say that it is up": func(ctx context.Context, o Options) error {
			p := redis
			p.ready = "no such line"
			_, err := start(ctx, p, o)
			return err
		},
		"a Cluster, where a master waits two seconds by itself": func(ctx context.Context, o Options) error {
			_, err := StartCluster(ctx, 1, 0, o)
			return err
		},
		"Sentinels without the password": func(ctx context.Context, o Options) error {
			o.Args = []string{"--requirepass", "secret", "--masterauth", "secret"}
			_, err := StartSentinel(ctx, o)
			return err
		},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if err := start(ctx, Options{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v, want a timeout", name, err)
		}
	}
}

func TestPollSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	looks, reason, missing := 0, errors.New("no more time"), errors.New("nobody there")
	err := poll(ctx, "nobody comes", func() error {
		if looks++; looks == 3 {
			cancel(reason)
		}
		return missing
	})
	if !errors.Is(err, reason) || !errors.Is(err, missing) || !strings.Contains(err.Error(), "nobody comes") {
		t.Errorf("error %v, want what was waited for, why no longer, and what was missing", err)
	}
}

package redislock_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
)

// clients are the three ways to a server.
var clients = map[string]redistest.Opening{"by URL": byURL, "rueidis": byRueidis, "go-redis": byGoRedis}

func TestConnectionsEndWhileIdle(t *testing.T) {
	t.Parallel()
	redistest.TryEndsWhileIdle(t, clients)
}

func TestConnectionsEndUnderWay(t *testing.T) {
	t.Parallel()
	redistest.TryEndsUnderWay(t, clients)
}

// A server that is restarted without a log has forgotten who holds, and gives the lock to the next
// one. Whoever holds sees the end of his subscription, and asks long before his next renewal.
func TestHolderAsksWhenItsSubscriptionEnds(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t)
	client := open(t, server.URL(), &interlock.Options{TTL: 10 * time.Minute, Grace: 100 * time.Millisecond})
	lease := hold(t, client.Mutex("m"))
	eventually(t, "the holder listens, and has been renewed after that", listensAndRenewed(t, server))
	if err := errors.Join(server.Kill(), server.Restart(t.Context())); err != nil {
		t.Fatal(err)
	}
	told(t, lease)
}

// listensAndRenewed reports whether the first holder at a server has subscribed, and been renewed
// after that.
func listensAndRenewed(t *testing.T, server *servertest.Server) func() bool {
	t.Helper()
	return func() bool {
		_, calls, _ := strings.Cut(server.MustDo(t, "INFO", "commandstats"), "cmdstat_pexpire:calls=")
		return calls != "" && !strings.HasPrefix(calls, "1,") // the counter's, and a renewal's
	}
}

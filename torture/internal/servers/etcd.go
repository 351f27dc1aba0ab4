//go:build linux || darwin

package servers

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"time"

	"github.com/interlock-go/interlock/internal/servertest"
)

// etcd is three members, of which one leads.
type etcd struct {
	usual
	*servertest.Etcds
}

func startEtcd(ctx context.Context) (kind, error) {
	e, err := servertest.StartEtcds(ctx, 3, servertest.Options{})
	if err != nil {
		return nil, err
	}
	return etcd{Etcds: e}, nil
}

func (e etcd) url() string                 { return e.URL() }
func (e etcd) nodes() []*servertest.Server { return e.Members }
func (e etcd) proxied() []string           { return addrs(e.Members) }
func (e etcd) tells() bool                 { return false }
func (e etcd) close() error                { return e.Close() }

func (e etcd) harm(ctx context.Context, i *Injector, fault string) error {
	some := e.Members[i.rand.IntN(len(e.Members))]
	switch fault {
	case FaultPause:
		return i.pause(ctx, some)
	case FaultRestart:
		return i.restart(ctx, some)
	case FaultRolling:
		for _, m := range e.Members {
			if err := i.restart(ctx, m); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("torture: no fault %q of an etcd", fault)
}

var keysTotal = regexp.MustCompile(`(?m)^etcd_debugging_mvcc_keys_total (\S+)$`)

func (e etcd) entries(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+e.Members[0].Addr()+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	r.Close = true
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return find(keysTotal, text, err)
}

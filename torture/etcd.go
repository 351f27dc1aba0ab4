//go:build linux || darwin

package torture

import (
	"context"
	"fmt"
)

// harmEtcd does one thing to members of an etcd, of which one of three leads.
func (h *havoc) harmEtcd(ctx context.Context, kind string) error {
	members := h.servers.etcd.Members
	some := members[h.rand.IntN(len(members))]
	switch kind {
	case FaultPause:
		return h.pause(ctx, some)
	case FaultRestart:
		return h.restart(ctx, some)
	case FaultRolling:
		for _, m := range members {
			if err := h.restart(ctx, m); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("torture: no fault %q of an etcd", kind)
}

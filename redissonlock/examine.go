package redissonlock

import (
	"context"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redisstore"
)

// Examine implements driver.Examiner.
func (d *Driver) Examine(ctx context.Context, e driver.Exam) ([]driver.Finding, error) {
	needs := commands
	if d.groups.sharded {
		needs = append(needs[:len(needs):len(needs)], "ssubscribe", "spublish")
	}
	name := "interlock-doctor-" + driver.NewID()
	return redisstore.Examine(ctx, d.store.Conn, redisstore.Examination{Exam: e, Needs: needs, Key: name, Channel: name, Tokens: "tokens go back with it"})
}

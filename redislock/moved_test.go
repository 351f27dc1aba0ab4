package redislock_test

import (
	"testing"

	"github.com/interlock-go/interlock/internal/redistest"
)

func TestMasterMovesBehindOneAddress(t *testing.T) {
	t.Parallel()
	redistest.TryMoves(t, clients)
}

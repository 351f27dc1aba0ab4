package goredis_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/redisconn"
)

func TestMasterMovesBehindOneAddress(t *testing.T) {
	redistest.TryConnMoves(t, func(t *testing.T, addr string) redisconn.Conn {
		return connOf(t, redis.NewClient(&redis.Options{Addr: addr}))
	})
}

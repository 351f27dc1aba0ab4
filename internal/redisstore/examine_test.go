package redisstore

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redisconn"
)

// However far the server is, few answers are waited for one after the other: what a lock needs is
// asked for at once. In the bubble time goes on only while a request is under way.
func TestExamineServer_RoundTrips(t *testing.T) {
	t.Parallel()
	for of, most := range map[string]int{"7.0.15": 10, "6.2.0": 20} {
		synctest.Test(t, func(t *testing.T) {
			const away = 200 * time.Millisecond
			asked := make(chan struct{}, 1000)
			do := func(_ context.Context, words ...string) (any, error) {
				time.Sleep(away)
				asked <- struct{}{}
				switch strings.Join(words[:min(len(words), 2)], " ") {
				case "INFO":
					return "role:master\r\nredis_version:" + of + "\r\naof_enabled:1\r\nmaxmemory_policy:noeviction\r\nmaxclients:100\r\n", nil
				case "CONFIG GET":
					if of < "7" && len(words) > 3 {
						return nil, redisconn.ParseError("ERR Unknown subcommand or wrong number of arguments for 'GET'")
					}
					return []any{words[2], "1"}, nil
				case "TIME":
					return []any{"946684800", "0"}, nil
				case "ACL WHOAMI":
					return "app", nil
				}
				return nil, nil
			}
			began := time.Now()
			needs := []string{"get", "set", "del", "eval", "evalsha", "hget", "hset", "hdel", "incr", "publish", "subscribe", "pexpire", "pttl", "zadd", "zrem", "rpush"}
			if _, err := ExamineServer(t.Context(), do, "", Examination{Exam: driver.Exam{TTL: time.Minute, Grace: time.Second}, Needs: needs}); err != nil {
				t.Fatal(err)
			}
			if trips := int(time.Since(began) / away); trips > most {
				t.Errorf("Redis %s: %d requests took %d round trips, want at most %d", of, len(asked), trips, most)
			}
			if len(asked) < len(needs) {
				t.Errorf("Redis %s: %d requests, want what a lock needs among them", of, len(asked))
			}
		})
	}
}

package all_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/interlock-go/interlock"
	_ "github.com/interlock-go/interlock/etcdlock"
	"github.com/interlock-go/interlock/fence"
	"github.com/interlock-go/interlock/internal/servertest"
	_ "github.com/interlock-go/interlock/redislock"
)

// A file that was guarded by the tokens of a Redis goes on under those of an etcd, which are a thousand million times smaller: the base
// lifts them above what the file has seen, and whoever comes late from the Redis is refused.
func Example_move() {
	ctx := context.Background()
	redis, err := servertest.Start(ctx, servertest.Options{Args: []string{"--appendonly", "yes", "--appendfsync", "always"}})
	if err != nil {
		log.Fatal(err)
	}
	defer redis.Close()
	etcd, err := servertest.StartEtcd(ctx, servertest.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer etcd.Close()
	dir, err := os.MkdirTemp("", "move")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	hosts := fence.NewFile(filepath.Join(dir, "hosts"), 0o644)
	add := func(ctx context.Context, line string) error {
		return hosts.Update(ctx, interlock.Fence(ctx, "hosts"), func(content []byte) ([]byte, error) {
			return append(content, line+"\n"...), nil
		})
	}
	// with adds a line under a lease of a store, and returns the context of that lease.
	with := func(url, line string) (of context.Context, err error) {
		client, err := interlock.Open(ctx, url, nil)
		if err != nil {
			log.Fatal(err)
		}
		defer client.Close()
		err = client.Mutex("hosts").Do(ctx, func(ctx context.Context) error {
			of = ctx
			return add(ctx, line)
		})
		return of, err
	}

	old, err := with(redis.URL(), "10.0.0.1 by redis")
	fmt.Println("redis:", err)
	_, err = with(etcd.URL(), "10.0.0.2 by etcd")
	var stale *fence.StaleError
	fmt.Println("etcd:", errors.As(err, &stale))

	// Every program that locks with the Redis has ended by now, so the file has seen the largest of its tokens.
	base := fmt.Sprintf("?fence_base=%d", stale.Highest)
	_, err = with(etcd.URL()+base, "10.0.0.2 by etcd")
	fmt.Println("etcd with a base:", err)
	// One of them had not ended. Its token is that of before.
	fmt.Println("late:", errors.Is(add(context.WithoutCancel(old), "10.0.0.3 late"), fence.ErrStale))
	_, err = with(etcd.URL()+base, "10.0.0.4 by etcd")
	fmt.Println("etcd with a base:", err)

	content, err := hosts.Read()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(string(content))
	// Output:
	// redis: <nil>
	// etcd: true
	// etcd with a base: <nil>
	// late: true
	// etcd with a base: <nil>
	// 10.0.0.1 by redis
	// 10.0.0.2 by etcd
	// 10.0.0.4 by etcd
}

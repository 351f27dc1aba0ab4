package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/redisconn"
)

var escape = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)

// Glob returns the pattern for keys that begin with what before matches, followed by prefix
// literally.
func Glob(before, prefix string) string { return before + escape.Replace(prefix) + "*" }

// Scan calls found with a master's keys that match, a page at a time. A key may come more than
// once, and a key that is made or deleted meanwhile may come or not. Words are further ones of the
// command SCAN.
func Scan(ctx context.Context, do redisconn.DoFunc, match string, found func(keys []string) error, words ...string) error {
	for cursor := "0"; ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		v, err := read(ctx, do, append([]string{"SCAN", cursor, "MATCH", match, "COUNT", "1000"}, words...)...)
		if err != nil {
			return redisconn.Classify(err)
		}
		page, _ := v.([]any)
		if len(page) != 2 {
			return errors.New("the server answered SCAN with something else")
		}
		some, _ := page[1].([]any)
		keys := make([]string, 0, len(some))
		for _, key := range some {
			if key, ok := key.(string); ok {
				keys = append(keys, key)
			}
		}
		if err := found(keys); err != nil {
			return err
		}
		if cursor, _ = page[0].(string); cursor == "0" || cursor == "" {
			return nil
		}
	}
}

// read sends a command that changes nothing, a second time if the connection had ended.
func read(ctx context.Context, do redisconn.DoFunc, words ...string) (any, error) {
	v, err := do(ctx, words...)
	if err != nil && redisconn.Broken(err) && ctx.Err() == nil {
		return do(ctx, words...)
	}
	return v, err
}

// Names returns the names that begin with prefix, in order, from the keys of all masters that
// match. nameOf returns the name of a key, or "". If one of several masters cannot be reached,
// Names returns those of the others, and an error that says so.
func Names(ctx context.Context, conn redisconn.Conn, match, prefix string, nameOf func(key string) string, words ...string) ([]string, error) {
	var names []string
	var missing error
	err := conn.EachMaster(ctx, func(do redisconn.DoFunc) error {
		err := Scan(ctx, do, match, func(keys []string) error {
			for _, key := range keys {
				if name := nameOf(key); name != "" && strings.HasPrefix(name, prefix) {
					names = append(names, name)
				}
			}
			return nil
		}, words...)
		var answer *redisconn.Error
		if err != nil && !errors.As(err, &answer) && ctx.Err() == nil { // as in Inspect
			missing = errors.Join(missing, fmt.Errorf("list names of a master that does not answer: %w", err))
			return nil
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list names: %w", err)
	}
	slices.Sort(names)
	return slices.Compact(names), missing
}

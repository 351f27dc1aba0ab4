package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redisconn"
)

// Knows returns an error that names those of the commands, some with a subcommand as ACL SETUSER
// takes it, which a server does not know: it is another program that speaks the protocol, or an
// administrator has renamed them. It is no error if the server, or a proxy, does not answer that to
// this user.
func Knows(ctx context.Context, do redisconn.DoFunc, commands []string) error {
	words := []string{"COMMAND", "INFO"}
	for _, c := range commands {
		name, _, _ := strings.Cut(c, "|")
		words = append(words, name)
	}
	v, err := read(ctx, do, words...)
	var answer *redisconn.Error
	if errors.As(err, &answer) {
		return nil
	}
	if err != nil {
		return err
	}
	known, _ := v.([]any)
	var missing []string
	for i, about := range known {
		if fields, _ := about.([]any); len(fields) == 0 && i < len(commands) {
			missing = append(missing, strings.ToUpper(words[i+2]))
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w: the server does not know %s, or has it by another name: a lock needs the commands that ACL of its package lists",
			driver.ErrRefused, strings.Join(missing, ", "))
	}
	return nil
}

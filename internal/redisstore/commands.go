package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redisconn"
)

// Knows asks a server whether it knows these commands, some with a subcommand as ACL SETUSER takes it, and returns an error
// that names those that it does not: it speaks the protocol and is another program, or an administrator has renamed them.
// That a server or a proxy does not tell, or not this user, is no error.
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
	told, _ := v.([]any)
	var missing []string
	for i, about := range told {
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

package redisconn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// elsewhere are the codes of a server that is not the master, or not yet.
var elsewhere = []string{"READONLY", "MASTERDOWN", "LOADING", "UNBLOCKED"}

// Moved reports whether the answer to a command is that of a server which is not the master, or not
// yet, so that nothing was done. The connections to it then lead to the wrong server, though they
// work: package redislink. It is for adapters.
func Moved(words []string, v any, err error) bool {
	var answer *Error
	if errors.As(err, &answer) {
		return slices.Contains(elsewhere, answer.Code)
	}
	if text, ok := v.(string); ok && len(words) > 0 && words[0] == "INFO" {
		return strings.Contains(text, "\nrole:slave")
	}
	return false
}

// Resend has those of the commands sent once more, by send, that were answered by a server which is
// not the master, and puts the new answers into replies: whatever they are, since this time the
// commands may have been carried out. Where there is none, the error says what the first answer
// was, too. It is for adapters.
func Resend(cmds []Command, replies []Reply, send func(again []Command) []Reply) {
	var again []Command
	var at []int
	for i, cmd := range cmds {
		if Moved(cmd.Words, replies[i].Value, replies[i].Err) {
			again, at = append(again, cmd), append(at, i)
		}
	}
	if len(again) == 0 {
		return
	}
	for j, reply := range send(again) {
		var answer *Error
		if before := replies[at[j]].Err; before != nil && reply.Err != nil && !errors.As(reply.Err, &answer) {
			reply.Err = fmt.Errorf("once more: %w; at first: %s", reply.Err, Classify(before).Error())
		}
		replies[at[j]] = reply
	}
}

// moved closes the connections, since the server that has answered is not the master. The
// connections of a user's client it cannot close; for a while commands then use connections that
// were shown to lead to the master.
func (c *conn) moved() {
	if c.links.End() && c.own {
		go func() { // rueidis sees that a connection has ended when it uses it, and the command fails
			ctx, cancel := context.WithTimeout(context.Background(), DefaultTimeout)
			defer cancel()
			for range idle {
				if _, err := c.Do(ctx, Command{Words: []string{"PING"}}); err == nil || !Broken(err) {
					return
				}
			}
		}()
	}
}

// straying reports whether a connection of the user's client may lead to a former master.
func (c *conn) straying() bool { return !c.own && c.links.Lately() }

// found sends commands, of which some were answered by a server that is not the master, to the
// master once more. A cluster says by itself where a slot is.
func (c *conn) found(ctx context.Context, cmds []Command, replies []Reply) {
	if c.clustered() {
		return
	}
	Resend(cmds, replies, func(again []Command) []Reply {
		c.moved()
		return c.fresh(ctx, again)
	})
}

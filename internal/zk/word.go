package zk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// Why a server does not answer a word.
var (
	ErrNotListed  = errors.New("zookeeper: the word is not in the server's 4lw.commands.whitelist")
	ErrNotServing = errors.New("zookeeper: the server serves nobody: it has no majority, or is coming up")
)

// longestWord bounds an answer: the connections of a busy server are some hundred bytes each.
const longestWord = 16 << 20

// Word sends one of the four-letter words for operators, such as "srvr", to the server at addr over
// a connection of its own. It returns the answer, and the address at which the server was reached.
func (o Options) Word(ctx context.Context, addr, word string) (answer, at string, err error) {
	dial := o.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	nc, err := dial(ctx, "tcp", addr)
	if err != nil {
		return "", "", fmt.Errorf("%s: %w", addr, err)
	}
	defer nc.Close()
	raw := nc
	defer context.AfterFunc(ctx, func() { _ = raw.SetDeadline(time.Unix(1, 0)) })()
	if o.TLS != nil {
		if nc, err = secure(ctx, o.TLS, nc, addr); err != nil {
			return "", "", fmt.Errorf("%s: %w", addr, err)
		}
	}
	var b []byte
	if _, err = io.WriteString(nc, word); err == nil {
		b, err = io.ReadAll(io.LimitReader(nc, longestWord))
	}
	answer, at = string(b), raw.RemoteAddr().String()
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case strings.Contains(answer, "is not executed because it is not in the whitelist"):
		return "", at, ErrNotListed
	case strings.Contains(answer, "not currently serving requests"):
		return "", at, ErrNotServing
	case answer == "":
		err = cmp.Or(err, io.ErrUnexpectedEOF)
	default:
		return answer, at, nil // some servers reset a connection that they have answered
	}
	return "", at, fmt.Errorf("%s does not answer %s: %w", addr, word, err)
}

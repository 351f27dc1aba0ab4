package redisconn

import (
	"context"
	"sync"
)

// Conn is a Redis, one server or many, as a lock needs it. All methods may be called concurrently.
type Conn interface {
	// Do sends one command to the master that owns its keys and returns the answer: nil, int64,
	// string or []any. It sends it once, also where the connection turns out to have ended: see
	// [Call].Again for what repeats it. Only a redirection, which says that nothing was done, is
	// followed. It returns by ctx's deadline, and need not notice that ctx is cancelled before: see
	// Abandons.
	Do(ctx context.Context, cmd Command) (any, error)

	// DoAll sends the commands together, each to the master that owns its keys, and returns the
	// answers in order.
	DoAll(ctx context.Context, cmds []Command) []Reply

	// Subscribe subscribes to channel at the master that owns key, over a connection of its own,
	// and returns when the master has confirmed it. onMessage is called for one message after the
	// other.
	Subscribe(ctx context.Context, key, channel string, onMessage func(payload string)) (*Subscription, error)

	// Listen opens a connection to the master that owns key for subscriptions only. With sharded
	// they are those of shard channels (SSUBSCRIBE, Redis 7 on a Cluster). onMessage is called for
	// one message after the other.
	Listen(ctx context.Context, key string, sharded bool, onMessage func(channel, payload string)) (*Listener, error)

	// Node names the master that owns key, as far as the client knows, and at once; it is empty
	// where there is only one.
	Node(key string) string

	// Doubt records that the answers of Node may be out of date. The client updates them in the
	// background.
	Doubt()

	// Moves yields a value after the client has learned that slots have got other masters, so that
	// Node answers anew. It is nil where there is one master, or where the client does not say.
	Moves() <-chan struct{}

	// EachMaster calls visit for each master with a way to send commands to it alone, until one
	// fails.
	EachMaster(ctx context.Context, visit func(do DoFunc) error) error

	// Abandons reports whether Do and DoAll return soon after ctx is cancelled. The command may
	// then still be carried out, before what DoAll or Do with Behind sends to the same master
	// afterwards, unless its connection was closed.
	Abandons() bool

	// Close closes what this Conn opened itself.
	Close()
}

// Generations is a Conn that reports when its connections are new. Package redlock sends fewer
// requests to a server over such a Conn.
type Generations interface {
	// Generation returns a number that changes before the first command is sent over a new
	// connection.
	Generation() uint64
}

// Generation is the Generation of a Conn, or 0 where it does not say.
func Generation(c Conn) uint64 {
	if g, ok := c.(Generations); ok {
		return g.Generation()
	}
	return 0
}

// DoFunc sends one command without keys, or with keys of that master only.
type DoFunc func(ctx context.Context, words ...string) (any, error)

// Command is one command of Redis.
type Command struct {
	Words []string // the command's name and its arguments
	First int      // Words[First : First+Keys] are its keys, which share a slot
	Keys  int

	// Behind has Do send the command behind those that it has abandoned, which another connection
	// could overtake.
	Behind bool

	// Fresh has Do send the command over a connection that has answered a PING just before, behind
	// what was abandoned. DoAll looks at the first command only, and takes the master of its keys
	// to own those of all.
	Fresh bool
}

// Reply is the answer to one of several commands.
type Reply struct {
	Value any
	Err   error
}

// Subscription is a subscription to one channel.
type Subscription struct {
	Node string          // of the master that confirmed it, as Conn.Node names it
	Done <-chan struct{} // closed when the connection has ended; no message is received after that

	once sync.Once
	end  func()
}

// NewSubscription is for adapters: end makes done close.
func NewSubscription(node string, done <-chan struct{}, end func()) *Subscription {
	return &Subscription{Node: node, Done: done, end: end}
}

// Close ends the subscription and closes the connection.
func (s *Subscription) Close() { s.once.Do(s.end) }

// Listener is a connection with subscriptions, which come and go. It ends when its connection does,
// and also when the server ends a subscription because the channel's slot has moved: then its user
// has to subscribe again, at another master.
type Listener struct {
	Node string          // of the master that it is connected to, as Conn.Node names it
	Done <-chan struct{} // closed when the connection has ended; no message is received after that

	subscribe   func(ctx context.Context, channel string) error
	unsubscribe func(ctx context.Context, channel string)
	once        sync.Once
	end         func()
}

// NewListener is for adapters: end makes done close.
func NewListener(
	node string, done <-chan struct{},
	subscribe func(ctx context.Context, channel string) error, unsubscribe func(ctx context.Context, channel string), end func(),
) *Listener {
	return &Listener{Node: node, Done: done, subscribe: subscribe, unsubscribe: unsubscribe, end: end}
}

// Subscribe listens to a channel, and returns when the server has confirmed it.
func (l *Listener) Subscribe(ctx context.Context, channel string) error {
	return l.subscribe(ctx, channel)
}

// Unsubscribe listens to a channel no more. When it has returned, a Subscribe to the same channel
// comes after it.
func (l *Listener) Unsubscribe(ctx context.Context, channel string) { l.unsubscribe(ctx, channel) }

// Close ends the subscription and closes the connection.
func (l *Listener) Close() { l.once.Do(l.end) }

package redisconn

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/redis/rueidis"

	"github.com/interlock-go/interlock/internal/redislink"
)

// Listener is a connection that listens to channels, which come and go. It ends when its connection does, and also when
// the server takes a channel away because its slot has moved: who listened asks again then, where the channel is now.
type Listener struct {
	Node string          // of the master that it is connected to, as Conn.Node names it
	Done <-chan struct{} // closed when the connection has ended; nothing is heard after that

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

// Unsubscribe listens to a channel no more. When it has returned, a Subscribe to the same channel comes after it.
func (l *Listener) Unsubscribe(ctx context.Context, channel string) { l.unsubscribe(ctx, channel) }

// Close stops listening and closes the connection.
func (l *Listener) Close() { l.once.Do(l.end) }

// Listen implements Conn.
func (c *conn) Listen(ctx context.Context, key string, sharded bool, heard func(channel, payload string)) (*Listener, error) {
	return apart(ctx, func() (*Listener, error) { return c.listen(ctx, key, sharded, heard) })
}

// apart opens a connection, which rueidis does without looking at a context: when ctx ends first the caller goes, and what
// was opened for nobody is closed.
func apart[T interface{ Close() }](ctx context.Context, open func() (T, error)) (T, error) {
	type opened struct {
		t   T
		err error
	}
	done := make(chan opened, 1)
	go func() {
		t, err := open()
		done <- opened{t, err}
	}()
	select {
	case o := <-done:
		return o.t, o.err
	case <-ctx.Done():
		go func() {
			if o := <-done; o.err == nil {
				o.t.Close()
			}
		}()
		var none T
		return none, ctx.Err()
	}
}

// listening is a Listener over rueidis.
type listening struct {
	conn    *conn
	client  rueidis.DedicatedClient
	sharded bool
	closed  chan struct{}

	mu      sync.Mutex
	leaving map[string]int // channels whose end was asked for
}

// dedicate returns a connection of its own that answers. Where an idle one may lead to a former master, it shows by a write
// that does nothing whether it does.
func (c *conn) dedicate(until *deadline, client rueidis.Client, key string) (d rueidis.DedicatedClient, giveBack func(), err error) {
	question, strayed := []string{"PING"}, c.straying()
	if strayed {
		question = redislink.Probe(key)
	}
	for range idle {
		d, giveBack = client.Dedicate()
		_, err = read(d.Do(until, d.B().Arbitrary(question...).Build()).ToAny())
		moved := Moved(nil, nil, err)
		var refusal *Error
		if err == nil || strayed && !moved && errors.As(err, &refusal) { // a right is missing, which says nothing
			return d, giveBack, nil
		}
		d.Close()
		giveBack()
		if !Broken(err) && !moved || until.Err() != nil {
			break
		}
	}
	return nil, nil, err
}

func (c *conn) listen(ctx context.Context, key string, sharded bool, heard func(channel, payload string)) (*Listener, error) {
	node, client, err := c.masterOf(ctx, key)
	if err != nil {
		return nil, err
	}
	until := untilDeadline(ctx)
	defer until.finish()
	dedicated, giveBack, err := c.dedicate(until, client, key)
	if err != nil {
		_, err = c.answer(nil, err)
		return nil, err
	}
	g := &listening{conn: c, client: dedicated, sharded: sharded, closed: make(chan struct{}), leaving: map[string]int{}}
	end := sync.OnceFunc(func() {
		dedicated.Close()
		giveBack()
	})
	errs := dedicated.SetPubSubHooks(rueidis.PubSubHooks{
		OnMessage: func(m rueidis.PubSubMessage) { heard(m.Channel, m.Message) },
		OnSubscription: func(s rueidis.PubSubSubscription) {
			if strings.HasSuffix(s.Kind, "unsubscribe") && !g.left(s.Channel) {
				go end() // not from within the client's reader
			}
		},
	})
	go func() {
		defer close(g.closed)
		defer c.links.Add(func() { go end() })()
		defer c.Doubt() // a connection that ends is often a master that does
		c.attend(node, key, dedicated, errs, end)
	}()
	named := node
	if !c.clustered() {
		named = "" // as Node says
	}
	return NewListener(named, g.closed, g.subscribe, g.unsubscribe, end), nil
}

// left reports whether the end of the channel was asked for.
func (g *listening) left(channel string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.leaving[channel] == 0 {
		return false
	}
	if g.leaving[channel]--; g.leaving[channel] == 0 {
		delete(g.leaving, channel)
	}
	return true
}

func (g *listening) subscribe(ctx context.Context, channel string) error {
	until := untilDeadline(ctx)
	defer until.finish()
	b := g.client.B()
	cmd := b.Subscribe().Channel(channel).Build()
	if g.sharded {
		cmd = b.Ssubscribe().Channel(channel).Build()
	}
	done := make(chan error, 1)
	go func() { done <- g.client.Do(until, cmd).Error() }()
	select {
	case err := <-done:
		if errors.Is(err, rueidis.ErrClosing) {
			return errEnded
		}
		_, err = g.conn.answer(nil, err)
		return err
	case <-g.closed:
		return errEnded
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *listening) unsubscribe(ctx context.Context, channel string) {
	g.mu.Lock()
	g.leaving[channel]++
	g.mu.Unlock()
	b := g.client.B()
	cmd := b.Unsubscribe().Channel(channel).Build()
	if g.sharded {
		cmd = b.Sunsubscribe().Channel(channel).Build()
	}
	until := untilDeadline(ctx)
	defer until.finish()
	_ = g.client.Do(until, cmd) // a connection that fails has ended, and says so by Done
}

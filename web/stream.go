package web

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/interlock-go/interlock/web/internal/hub"
)

// The times of a stream.
const (
	// pingEvery is how often a stream says something, so that proxies keep the connection. The
	// rights of the viewer are asked for again at the same time.
	pingEvery = 15 * time.Second

	writeLimit = 10 * time.Second // for one message: a viewer who does not read is dropped

	// silenceLimit is the deadline between two messages, well above pingEvery: over HTTP/2 one that
	// passes ends the stream, though nothing is being written. What net/http writes when the stream
	// has ended has it, too.
	silenceLimit = time.Minute

	// pauseLeast is the pause after a message. Of the states that come meanwhile the newest is
	// sent.
	pauseLeast = 250 * time.Millisecond
)

// message is one message of a stream.
type message struct {
	event string
	data  []byte
}

// jsonMessage returns a message with v as its data.
func jsonMessage(event string, v any) (*message, error) {
	b, err := json.Marshal(v)
	return &message{event, b}, err
}

// streams serve viewers, as many as there may be.
type streams struct {
	limit     *limiter
	life      *hub.Life // ends the streams
	log       *slog.Logger
	authorize func(*http.Request) (Principal, error)
}

// serve sends server-sent events until the viewer goes, does not read, or may look no more. follow
// puts states into a mailbox; say makes a message of each, nil if there is nothing to say. The
// viewer's goroutine is this one: it holds nothing that others wait for.
func (t *streams) serve(
	w http.ResponseWriter, r *http.Request, who Principal, follow func(*hub.Mailbox) (leave func()), say func(hub.State, Principal) (*message, error),
) error {
	end, err := t.limit.begin(who.Name)
	if err != nil {
		return err
	}
	defer end()
	out := &streamWriter{w: w, control: http.NewResponseController(w)}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	if r.Method == http.MethodHead {
		return nil
	}
	if out.send([]byte("retry: 2000\n\n")) != nil {
		return nil
	}
	box := hub.NewMailbox()
	leave := follow(box)
	defer leave()
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	rest := time.NewTimer(0)
	defer rest.Stop()
	rested := rest.C // nil once the stream may say something
	for {
		states := box.States()
		if rested != nil {
			states = nil
		}
		select {
		case <-r.Context().Done():
			return nil
		case <-t.life.Context().Done():
			return nil
		case <-rested:
			rested = nil
		case <-ping.C:
			again, err := t.authorize(r)
			if err != nil || len(again.Read) == 0 {
				_ = out.message(&message{"end", []byte(`{}`)}) // the next request says why
				return nil
			}
			who = again
			if out.send([]byte(": ping\n\n")) != nil {
				return nil
			}
		case s := <-states:
			m, err := say(s, who)
			if err != nil {
				t.log.Error("interlock web: stream failed", "path", r.URL.Path, "err", err)
				return nil
			}
			if m == nil {
				continue
			}
			if out.message(m) != nil {
				return nil
			}
			rest.Reset(pauseLeast)
			rested = rest.C
		}
	}
}

// streamWriter writes the messages of a stream.
type streamWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

// message writes a message.
func (s *streamWriter) message(m *message) error {
	var b bytes.Buffer
	b.Grow(len(m.data) + len(m.data)/16 + 64)
	b.WriteString("event: " + m.event + "\n")
	for line := range bytes.Lines(m.data) {
		b.WriteString("data: ")
		b.Write(bytes.TrimRight(line, "\r\n"))
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	return s.send(b.Bytes())
}

// send writes b within writeLimit. The server's own deadline would end the stream, and without one
// a viewer that is gone without a word would be served for ever.
func (s *streamWriter) send(b []byte) error {
	_ = s.control.SetWriteDeadline(time.Now().Add(writeLimit)) // a wrapped writer may have none
	if _, err := s.w.Write(b); err != nil {
		return err
	}
	err := s.control.Flush()
	_ = s.control.SetWriteDeadline(time.Now().Add(silenceLimit))
	return err
}

// limiter bounds the streams: all of them, and those of one principal by half of that.
type limiter struct {
	most int

	mu  sync.Mutex
	all int
	by  map[string]int // principals that have a name
}

func newLimiter(most int) *limiter { return &limiter{most: most, by: map[string]int{}} }

// begin counts a stream of a principal, unless there are too many, until end is called.
func (g *limiter) begin(who string) (end func(), err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	half := (g.most + 1) / 2
	switch {
	case g.all >= g.most:
		return nil, problemOf("too-many", "there are %d streams, and there may be no more", g.all)
	case who != "" && g.by[who] >= half:
		return nil, problemOf("too-many", "%.100q has %d streams, and one may have no more", who, half)
	}
	g.all++
	g.by[who]++
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.all--
		if g.by[who]--; g.by[who] == 0 {
			delete(g.by, who)
		}
	}, nil
}

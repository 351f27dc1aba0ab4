package drivertest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// traceLines is how much of a trace is kept: the end of it tells what broke the law.
const traceLines = 80

// trace is what happened in a trial, in the words of a report. Claims are called c1, c2 … in the
// order in which they first appear, because their IDs mean nothing to a reader.
type trace struct {
	mu      sync.Mutex
	start   time.Time
	prefix  string
	lines   []string
	omitted int
	labels  map[string]string
}

func (s *trace) begin(prefix string) {
	s.start, s.prefix, s.labels = time.Now(), prefix, map[string]string{}
}

// add appends a line for something that began at from and is over now.
func (s *trace) add(from time.Time, who, format string, args ...any) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.lines) == traceLines {
		s.lines = append(s.lines[:0], s.lines[1:]...)
		s.omitted++
	}
	s.lines = append(s.lines, fmt.Sprintf("%9.4f–%9.4f s  %-6s %s",
		from.Sub(s.start).Seconds(), now.Sub(s.start).Seconds(), who, fmt.Sprintf(format, args...)))
}

func (s *trace) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := strings.Join(s.lines, "\n")
	if s.omitted > 0 {
		text = fmt.Sprintf("(%d earlier steps)\n", s.omitted) + text
	}
	return text
}

// label returns what the trace calls a claim's ID.
func (s *trace) label(id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, ok := s.labels[id]
	if !ok {
		l = fmt.Sprintf("c%d", len(s.labels)+1)
		s.labels[id] = l
	}
	return l
}

// claim describes c: its label, kind, numbers and name.
func (s *trace) claim(c driver.Claim) string {
	text := s.label(c.ID) + ": " + c.Kind.String()
	if c.Kind == driver.Permit {
		text += fmt.Sprintf(" %d of %d", c.Weight, c.Limit)
	}
	if !c.Queue {
		text += ", try"
	}
	return text + " on " + s.name(c.Name)
}

func (s *trace) name(name string) string {
	name = strings.TrimPrefix(name, s.prefix)
	if len(name) > 60 {
		return fmt.Sprintf("%.40q… (%d bytes)", name, len(name))
	}
	return fmt.Sprintf("%q", name)
}

// loss describes a claim that is lost, and why.
func (s *trace) loss(l driver.Loss) string {
	why := "no reason"
	if l.Err != nil {
		why = s.err(l.Err)
	}
	return "lost " + s.label(l.ID) + ": " + why
}

// grant describes an answer.
func (s *trace) grant(g driver.Grant, err error) string {
	switch {
	case err != nil:
		return "error: " + s.err(err)
	case g.Held && g.Fence != 0:
		return fmt.Sprintf("held, token %d", g.Fence)
	case g.Held:
		return "held"
	case g.Holder != nil:
		return fmt.Sprintf("not held, %s %s is in the way", g.Holder.Kind, g.Holder.PublicID)
	}
	return "not held"
}

// answered is an answer as an argument of fail, which must know whether the store has answered at
// all.
type answered struct {
	error
	text string
}

func (a answered) Error() string { return a.text }
func (a answered) Unwrap() error { return a.error }

// answer describes an answer that the law is broken by.
func (s *trace) answer(g driver.Grant, err error) error { return answered{err, s.grant(g, err)} }

// err describes an error and which of the contract's outcomes it is.
func (s *trace) err(err error) string {
	for _, known := range []error{driver.ErrSessionLost, driver.ErrRefused, driver.ErrNotSent, driver.ErrBroken, driver.ErrGone} {
		if errors.Is(err, known) {
			return fmt.Sprintf("%v (is %q)", err, known)
		}
	}
	return fmt.Sprintf("%v (outcome unknown)", err)
}

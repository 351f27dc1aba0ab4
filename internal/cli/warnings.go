package cli

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
)

// warnings is the log of this process, by which stores say what they could lose. It shows each text once.
type warnings struct {
	t     terminal
	least slog.Level
	said  sync.Map // by text
}

// newWarnings is for one command. What the store's configuration could lose is for whoever looks at the store, or reads along; it is not
// for each job's mail, nor for a shell that completes a word.
func newWarnings(t terminal, command string, line *commandLine) *warnings {
	w := &warnings{t: t, least: slog.LevelError}
	if line.Verbose {
		w.least = slog.LevelDebug
	}
	switch command {
	case "ls", "show", "watch", "break":
		w.least = min(w.least, slog.LevelWarn)
	case "run", "elect":
		if t.person && !line.Run.Quiet && !line.Elect.Quiet {
			w.least = min(w.least, slog.LevelWarn)
		}
	}
	return w
}

// Enabled implements slog.Handler.
func (w *warnings) Enabled(_ context.Context, l slog.Level) bool { return l >= w.least }

// Handle implements slog.Handler.
func (w *warnings) Handle(_ context.Context, r slog.Record) error {
	text := strings.TrimPrefix(r.Message, "interlock: ")
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "error" {
			text += fmt.Sprintf(": %v", a.Value)
		} else {
			text += fmt.Sprintf("; %s %v", a.Key, a.Value)
		}
		return true
	})
	text = inOneLine(text)
	if _, again := w.said.LoadOrStore(text, true); again {
		return nil
	}
	if r.Level < slog.LevelWarn { // for who asked for all there is
		w.t.say("%s", text)
	} else {
		w.t.warn(text)
	}
	return nil
}

// WithAttrs implements slog.Handler; no store uses it.
func (w *warnings) WithAttrs([]slog.Attr) slog.Handler { return w }

// WithGroup implements slog.Handler; no store uses it.
func (w *warnings) WithGroup(string) slog.Handler { return w }

package cli

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
)

// warnings is the slog.Handler of this process: drivers log what their stores could lose. It prints
// each text once.
type warnings struct {
	t     terminal
	least slog.Level
	said  sync.Map // by text
}

// leastLevel is the least level that a command shows. What the store's configuration could lose is
// for people who look at the store, or read along; it is not for each job's mail, nor for a shell
// that completes a word.
func leastLevel(t terminal, command string, verbose, quiet bool) slog.Level {
	looks := command == "ls" || command == "show" || command == "watch" || command == "break"
	runs := command == "run" || command == "elect"
	switch {
	case verbose:
		return slog.LevelDebug
	case looks, runs && t.person && !quiet:
		return slog.LevelWarn
	}
	return slog.LevelError
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

package servertest

import (
	"context"
	"time"
)

// TB is the part of testing.TB that the functions for tests use; programs that start servers do not
// link package testing.
type TB interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
	Fatal(args ...any)
}

// startLimit bounds the start of whatever a test asks for, on a machine that does other things as
// well.
const startLimit = time.Minute

// forTest starts something for the test and closes it at its end.
func forTest[S interface{ Close() error }](t TB, start func(context.Context) (S, error)) S {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	s, err := start(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("cannot close it: %v", err)
		}
	})
	return s
}

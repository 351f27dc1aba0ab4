package rowline_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/rowline"
)

var (
	errUndone  = errors.New("undone")
	errUnknown = errors.New("unknown")
	errCertain = errors.New("certain")
)

// A request is sent again as long as nothing was done, and once after an attempt of unknown fate.
// After that no error says that it was not sent.
func TestRequest(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		fails []error // one attempt each; then it succeeds
		late  bool    // no time is left for a second attempt
		sent  int
		twice bool
		want  error
	}{
		{sent: 1},
		{fails: []error{errUndone, errUndone, errUndone}, sent: 4},
		{fails: []error{errUndone}, late: true, sent: 1, want: errUndone},
		{fails: []error{errUnknown}, sent: 2, twice: true},
		{fails: []error{errUnknown, errUndone}, sent: 3, twice: true},
		{fails: []error{errUnknown, errUnknown}, sent: 2, twice: true, want: errUnknown},
		{fails: []error{errCertain}, sent: 1, want: driver.ErrNotSent},
		{fails: []error{errUnknown, errCertain}, sent: 2, twice: true, want: errCertain},
	} {
		sent := 0
		r := rowline.Request{
			Send: func() error {
				if sent++; sent <= len(test.fails) {
					return test.fails[sent-1]
				}
				return nil
			},
			Fate: func(err error) rowline.Fate {
				return map[error]rowline.Fate{errUndone: rowline.Undone, errUnknown: rowline.Unknown}[err]
			},
			Classify: func(err error) error {
				if errors.Is(err, errCertain) {
					return fmt.Errorf("%w: %w", driver.ErrNotSent, err)
				}
				return err
			},
		}
		end := time.Now().Add(time.Hour)
		if test.late {
			end = time.Now()
		}
		twice, err := r.Do(context.Background(), end)
		if sent != test.sent || twice != test.twice || (err == nil) != (test.want == nil) {
			t.Errorf("%v: sent %d times, twice %t, %v; want %d, %t, %v", test.fails, sent, twice, err, test.sent, test.twice, test.want)
		}
		if err != nil && (!strings.Contains(err.Error(), test.want.Error()) || twice && errors.Is(err, driver.ErrNotSent)) {
			t.Errorf("%v: %v; want %v", test.fails, err, test.want)
		}
	}
}

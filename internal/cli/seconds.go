package cli

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"

	"github.com/alecthomas/kong"
)

// decodeWait reads a time to wait into a *time.Duration.
func decodeWait(c *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := c.Scan.PopValueInto("time", &text); err != nil {
		return err
	}
	d, err := waitTime(text)
	if err == nil {
		target.Set(reflect.ValueOf(&d))
	}
	return err
}

// waitTime reads a time to wait: seconds, as flock(1), timeout(1) and sleep(1) take them, or a
// duration.
func waitTime(text string) (time.Duration, error) {
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		if n *= float64(time.Second); n >= 0 && n < math.MaxInt64 {
			return time.Duration(n), nil
		}
	} else if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return d, nil
	}
	return 0, fmt.Errorf("%q is no time to wait: want seconds, as 10 or 0.5, or a duration, as 500ms or 2m", text)
}

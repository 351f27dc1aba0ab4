package membership

import (
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/driver"
)

// Majority is how many of n masters decide.
func Majority(n int) int { return n/2 + 1 }

// TooFew says that fewer than a majority of n masters have answered: how many did, how many others
// refused, what those said that refuse for good, and the first that was said else. The error
// matches what is said else, or driver.ErrRefused if nothing is: while masters are missing that may
// come back, asking again may help.
func TooFew(n, answered, refused int, refusals []error, other error) error {
	text := fmt.Sprintf("redlock: %d of %d masters answered, want %d or more: ", answered, n, Majority(n))
	if refused > 0 {
		text = fmt.Sprintf("redlock: %d of %d masters answered, and %d of these refused, want %d or more that do not: ",
			answered+refused, n, refused, Majority(n))
	}
	refusals = slices.SortedFunc(slices.Values(refusals), func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	for i, err := range refusals {
		if i == len(refusals)-1 && other == nil {
			other = err
		} else {
			text += err.Error() + "; "
		}
	}
	return fmt.Errorf("%s%w", text, other)
}

// refuse says that masters cannot be used together, with both values.
func refuse(format string, values ...any) error {
	return fmt.Errorf("redlock: "+format+": %w", append(values, driver.ErrRefused)...)
}

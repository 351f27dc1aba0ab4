package broken

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/driver/line"
	"github.com/interlock-go/interlock/examples/versioned"
)

// moreSwapping are faults of drivers whose calls are several requests.
var moreSwapping = []Driver{
	{
		Name: "ReleaseReads", Law: "Law13_NothingStays", Says: "still keeps others out after its only other claim was released while a request",
		Fault: "Release does not write the row where the claim does not stand yet, so that the swap of its Acquire, which arrives later, finds the version it knows.",
		table: &tableFault{swap: func(ctx context.Context, t versioned.Table, name string, value []byte, version int64) (bool, error) {
			if len(claimsOf(value)) == 0 { // nobody is left: somebody was there before, or there is nothing to write
				before, now, err := t.Load(ctx, name)
				if err != nil {
					return false, err
				}
				if now == version && len(claimsOf(before)) == 0 {
					return true, nil
				}
			}
			return t.CompareAndSwap(ctx, name, value, version)
		}},
	},
	{
		Name: "SwapNotSent", Law: "Also_Outcomes", Says: "says that nothing was changed",
		Fault: "Whatever fails was not sent, also a swap that was.",
		table: &tableFault{fail: func(err error) error { return fmt.Errorf("%w: %w", driver.ErrNotSent, err) }},
	},
}

// claimsOf returns the claims that stand in a row.
func claimsOf(row []byte) []line.Claim {
	var l line.Line
	if len(row) > 0 {
		if err := json.NewDecoder(bytes.NewReader(row)).Decode(&l); err != nil {
			panic(err) // the driver has written it
		}
	}
	return l.Claims
}

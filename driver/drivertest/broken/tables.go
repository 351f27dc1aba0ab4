package broken

import (
	"context"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/examples/versioned"
	"github.com/interlock-go/interlock/examples/versioned/versionedtest"
)

// tableFault is what is wrong with a driver that loads a row and swaps it, as its requests show it.
// What is nil is right.
type tableFault struct {
	// load is what the driver makes of a row.
	load func(value []byte) []byte
	// swap stands in place of CompareAndSwap.
	swap func(ctx context.Context, t versioned.Table, name string, value []byte, version int64) (bool, error)
	// fail is what the driver makes of an error.
	fail func(error) error
}

// newTables returns the harness of such drivers.
func newTables(f *tableFault) *versionedtest.Harness {
	return versionedtest.New(func(t versioned.Table) driver.Driver { return versioned.New(faulty{t, f}) })
}

// faulty is a table as a driver with a fault sees it.
type faulty struct {
	table versioned.Table
	fault *tableFault
}

// Load implements versioned.Table.
func (t faulty) Load(ctx context.Context, name string) (value []byte, version int64, err error) {
	value, version, err = t.table.Load(ctx, name)
	if version > 0 && t.fault.load != nil {
		value = t.fault.load(value)
	}
	return value, version, t.failed(err)
}

// CompareAndSwap implements versioned.Table.
func (t faulty) CompareAndSwap(ctx context.Context, name string, value []byte, version int64) (swapped bool, err error) {
	swap := t.table.CompareAndSwap
	if t.fault.swap != nil {
		swap = func(ctx context.Context, name string, value []byte, version int64) (bool, error) {
			return t.fault.swap(ctx, t.table, name, value, version)
		}
	}
	swapped, err = swap(ctx, name, value, version)
	return swapped, t.failed(err)
}

func (t faulty) failed(err error) error {
	if err == nil || t.fault.fail == nil {
		return err
	}
	return t.fault.fail(err)
}

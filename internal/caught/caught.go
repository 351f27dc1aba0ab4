// Package caught makes an error of the panic of a store's driver, so that a server of several stores goes on. A driver may
// come from another module, and a panic in a goroutine of ours would end the process. That of a goroutine which the driver
// has started itself cannot be caught.
package caught

import (
	"fmt"
	"log/slog"
	"runtime/debug"
)

// Panic is to be deferred by a function that asks the driver of a store, with the error that the function returns. The log
// has what the driver panicked with, which may be anything, and where; the error, which strangers may read, has neither.
func Panic(err *error, log *slog.Logger, store string) {
	p := recover()
	if p == nil {
		return
	}
	log.Error(fmt.Sprintf("the driver of store %q has panicked", store), "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	*err = fmt.Errorf("the driver of store %q has panicked: the log of the server says where", store)
}

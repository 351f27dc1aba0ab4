// Package memcachedlock keeps locks in memcached, for programs that have one and nothing else.
//
// It is for efficiency only, to save work that would be done twice. memcached throws away what it
// has when its memory is full, when it is restarted and when somebody says flush_all, and then a
// second one holds while the first has not yet heard of it. Where that must not happen take another
// store, or check the token where the protected thing is written: see docs/fencing.md.
//
//	client, err := interlock.Open(ctx, "memcached://10.0.0.1", nil)
//	if err != nil {
//		return err
//	}
//	defer client.Close()
//	err = client.Mutex("thumbnails/7", interlock.Wait(0)).Do(ctx, work)
//
// # What happens
//
// A lock is an item. It is free when there is none: one command adds it where it is missing, and
// answers its version (its CAS), which every later command names: to renew it, and to delete it. So
// nobody renews or releases an item that is another's by now.
//
// The server gives each version but once and in order, so the token is made of that of the grant,
// and of when the server was started, since a server that is restarted begins its versions anew.
//
// The server counts time by whole seconds on a clock that may be almost two behind, so an item for
// N seconds lives between N − 2 and N. Here it gets a second more than was asked for, and is
// trusted for one less.
//
// There is no line, nothing is announced, and claims that wait poll. Each name belongs to one
// server for good, also while that is gone. See docs/backends/memcached.md.
package memcachedlock

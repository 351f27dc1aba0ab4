// Package memlock keeps locks in this process: the reference of the contract, and the store for tests.
//
// A program that takes an *interlock.Client can be tested without a server:
//
//	store := memlock.New()
//	client, err := interlock.New(store, nil)
//	…
//	store.Lose("coupons/42")    // returns when the lease's context has ended
//	resume := store.Stall()     // the store answers nothing until resume is called
//	store.Fail(errors.New("…")) // every call fails, until Fail(nil)
//
// Two clients over one Driver, or over [Driver.Share], are two processes as far as the locks are concerned. Time is
// the time package's, so inside a testing/synctest bubble every lease, grace and wait is exact and instant.
//
// A [Personality] makes the store worse in one respect, as real ones are: it clamps and rounds times, knows no order
// or no expiry, or loses, doubles and hurries its notices.
//
// # URLs
//
// mem: is a store of its own at every opening; mem:NAME is shared by all who open it in this process.
package memlock

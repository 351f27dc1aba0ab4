// Package shop sells a limited number of coupons over HTTP, out of a database, in as many processes as there is demand
// for. It is the example to read first: everything that a program does with a lock and a token stands in shop.go.
//
// To sell a coupon is three steps: look how many are left, take the buyer's money, write the sale down. The step in the
// middle is somebody else's service and takes its time, so no transaction of the database can span the three; another
// process that looks meanwhile sees the same number and sells the same coupon. (Where there is nothing in the middle,
// UPDATE … SET remaining = remaining - 1 WHERE remaining > 0 does it, and no lock is needed.)
//
// A [Guard] says what keeps the processes apart:
//
//	none   nothing: coupons are sold twice
//	lock   one process at a time: right, unless a process that was stopped in the middle writes after others went on
//	fence  the same, and the ledger refuses the late write, by its token
//
// Command interlock-lab plays this as `interlock-lab demo coupons`.
package shop

// Package shedlock shares the table of ShedLock, the lock of Java's schedulers, on PostgreSQL and
// on MySQL or MariaDB, so that cron jobs in Java and in Go, of which one is to run at a time, have
// one lock.
//
//	client, err := interlock.Open(ctx, "shedlock+postgres://app@localhost/shop", nil)
//	if err != nil {
//		return err
//	}
//	defer client.Close()
//	err = client.Mutex("nightly", interlock.Wait(0), interlock.MinHold(time.Minute)).Do(ctx, work)
//
// A program that has a sql.DB makes the driver of it: see [New]. The table is ShedLock's own, and
// nothing else is made. Its users have to go by the database's clock, as ShedLock does by
// usingDbTime or, where all clocks agree, by forceUtcTimeZone.
//
// # What happens
//
// A name is a row. It is free when its lock_until has passed, by the database's clock in UTC, and
// taken by one UPDATE that says so, or by the INSERT of a row that is missing. A release sets
// lock_until to now. In locked_by stands what tells each claim of ours from every other one:
// neither do we release what another program holds, nor can ShedLock, which by default writes its
// host there, release ours.
//
// A row is a line in which one stands at most, and package rowline keeps what is known of claims. A
// renewal sets the times of all claims in one statement, so that a lease lasts as long as its work
// and need not be as long as the longest run, as lockAtMostFor has to be.
//
// # What it promises
//
// One server that keeps what it has committed never has two holders. There are no tokens, so
// nothing refuses the late write of a holder that was stopped for longer than its lease: this is a
// lock that saves work, and not one to rely on for what must not happen twice. There is no line
// either: who waits asks, and whoever asks first gets it. See docs/backends/shedlock.md.
package shedlock

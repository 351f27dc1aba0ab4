// Package versioned is the worked example of docs/writing-a-driver.md: a driver over a table of versioned rows, which can do
// no more than load a row and swap it if nobody else has. SQL, DynamoDB, Consul, an object store with If-Match: most stores can.
//
// A row is a document with the whole line of a name, kept by package line. Every call loads it, changes it and swaps it;
// when somebody else was faster it begins anew. So each call is one atomic step whatever the table does inside.
//
// # Without a clock
//
// The table has no clock, and those of the machines are not compared. Each claim has a beat, a number that its owner
// counts up whenever it renews. Whoever looks remembers when it first saw the beat that stands there; once that is a TTL
// ago on its own clock, the owner cannot trust the claim any more, and the swap that takes it out fails if the owner was
// faster after all. The price: who looks for the first time has to look for a TTL before it can let in anybody, so
// expiry may come a whole TTL late, which is what Traits.Grain says.
//
// # Stragglers
//
// A swap whose caller has given up may reach the table later and take the lock for nobody. Release therefore swaps the row
// even if the claim is not there: what was under way then finds another version, and does nothing.
//
// # What it leaves out
//
// Nobody is told of a grant: waiters look, after 5 ms and ever later up to 250 ms. A session with claims in many rows
// renews them one by one. Rows are never deleted, because they keep the counters of tokens.
package versioned

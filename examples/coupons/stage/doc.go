// Package stage plays what package shop is about, in four acts, with shops that are processes of their own:
//
//  1. no lock: more coupons are sold than there are
//  2. a lock: exactly as many are sold as there are
//  3. a lock, and a holder that is stopped in the middle of a sale until its lease is over and the others have sold the
//     rest; continued, it writes what it had begun to write, and coupons are sold that are not there
//  4. the same with the token: the late write is refused
//
// What an act has shown is read from the database when it is over. Acts 1 and 3 must go wrong, acts 2 and 4 must not;
// otherwise the play has shown nothing, and says so.
//
// The bank is part of the play, so the moment to stop a holder needs no guessing: its payment has come in, and is not
// answered before the process stands still.
package stage

// Package mutant is the switch for seeded bugs.
//
// A test that has never failed proves nothing. Each way in which locks are known to fail has a test, and beside the
// line that prevents the failure stands the bug that would bring it back, behind [On]. Built with the tag mutant and
// run with INTERLOCK_MUTANT=ID, exactly that bug is live and the test named for it in mutants.txt must fail; `make
// mutants` does so for every line. In an ordinary build On is the constant false and nothing of it remains.
package mutant

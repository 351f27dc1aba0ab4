// Package cli is the command interlock: what package command makes public, and what the scripts
// under testdata test.
//
// It imports no store: the program does. Every command talks to a store that --store, --store-file
// or the environment names, or to the embedded store of this user. What people read is a table that
// fits into 80 columns, or a wider terminal; with -o wide it has all columns, and with --json it is
// the same as JSON, tokens as strings because they may exceed what other languages' numbers carry.
// Errors go to stderr in one line, or wrapped on a terminal, and say what would be right, and so do
// warnings and notices; with --json each line there is an object with error and status, with
// warning, or with notice. The exit status says which kind it was:
//
//	0   done                       65  what stands in the store is no lock, or is damaged
//	75  the lock was not acquired  69  the store cannot be used
//	76  the lock was lost          64  the command line, the name or the store's URL is wrong
//	71  no file descriptor left    70  anything else
//
// run returns its command's own status otherwise.
//
// The files have no circles. Leaves know no other file or few: the exit statuses, the terminal, the
// message in one line, tables, claims in columns and in JSON, the flags that name a store, and the
// store opened for reading. Each command is a file over them that knows no other command; run and
// elect stand over job, whose parts do not know each other. The table of commands in cli.go knows
// all of them, and they do not know it.
package cli

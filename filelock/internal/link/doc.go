// Package link connects the processes that use a store: it carries wake-ups between them, and finds out when a session
// is over. A wake-up says that something may have changed, never what: the receiver reads the record. So a message may
// come late, twice, or from anybody.
//
// A process that waits keeps one link, a Unix stream socket, to each session that it waits for. The link's end is a hint
// that the process at the other side is dead. The verdict is the lock on the session's file, which the whole process tree
// of the owner has.
package link

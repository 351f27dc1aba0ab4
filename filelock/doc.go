// Package filelock is the embedded store: the locks of one machine, kept in a directory.
//
//	driver, err := filelock.New("/var/lib/myapp/locks", nil)
//
// It needs no server. Every name has one small record, changed under flock(2) by the very rule that memlock follows;
// every session has a file with one word, the end of its time, and with an operating system's lock that the whole
// process tree of the holder inherits; waiters are woken, and learn of a death, through Unix stream sockets.
//
// # URLs
//
// The scheme is file: file:locks is a relative directory, file:/var/lib/locks and file:///var/lib/locks are absolute
// ones. The directory is made if its parent exists. See [Options] for the parameters.
//
// # Guarantees
//
// All traits hold: claims are granted in order, readers share, permits count, kinds mix by the rule, tokens outlive
// crashes and reboots. Claims do not outlive a reboot, nor the last process that acts for their session. A process that
// is killed is noticed at once; one that is stopped keeps its claims until its time is over.
//
// The directory must be on a file system of this machine, because flock and sockets stop at its border: a network or
// FUSE file system is refused. Nobody but the owner may write to it, unless it is a setgid directory that a group
// shares.
//
// # Lock order
//
// The driver's own locks, in the order in which they may be taken: a name's turn (one operation on a name at a time in
// this process), the record's flock, the name's mu, then one of the mu of a session's holdings and of a peer, and last
// those of names, process, background, Driver and link.Peers, none of which is held while another one is taken. Renewals
// take neither a turn nor a flock, so that nobody who is stopped can hold them up.
package filelock

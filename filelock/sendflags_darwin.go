package filelock

// sendFlags is empty: the Go runtime ignores the SIGPIPE of a broken link.
const sendFlags = 0

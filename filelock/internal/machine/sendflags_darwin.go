package machine

// SendFlags is empty: the Go runtime ignores the SIGPIPE of a broken link.
const SendFlags = 0

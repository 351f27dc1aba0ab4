package filelock

import "golang.org/x/sys/unix"

// sendFlags keep a broken link from raising SIGPIPE.
const sendFlags = unix.MSG_NOSIGNAL

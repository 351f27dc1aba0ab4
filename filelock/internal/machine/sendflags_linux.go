package machine

import "golang.org/x/sys/unix"

// SendFlags keep a broken link from raising SIGPIPE.
const SendFlags = unix.MSG_NOSIGNAL

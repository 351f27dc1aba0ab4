package filelock

// sendFlags is empty: package net sets SO_NOSIGPIPE.
const sendFlags = 0

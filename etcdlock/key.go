package etcdlock

import (
	"fmt"
	"strconv"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlock-go/interlock/driver"
)

// Keys, behind the namespace:
//
//	NAME/LEASE       a claim of the session of this lease, in hexadecimal as by package concurrency
//	NAME/LEASE-1     the session's second claim of the name at a time, and so on
//	interlock:sessions/LEASE       who the session is
//	interlock:sessions/LEASE/CLAIM a mark: an operator has broken this claim
//
// All are attached to the lease and are deleted with it. The lease is the only random part of a
// key: to read the keys under a prefix etcd walks over the deleted ones, until they are compacted,
// so a lock that is taken again and again has to use the same keys.
const reserved = "interlock:sessions"

// maxName is far below what one request may have.
const maxName = 4096

// prefix begins the keys of a name's claims.
func (o *Options) prefix(name string) string { return o.Namespace + name + "/" }

// session is the key of a session, which begins those of its marks.
func (o *Options) session(lease clientv3.LeaseID) string {
	return o.Namespace + reserved + "/" + hexadecimal(lease)
}

// mark is what the keys of a session's marks have before the claim.
func mark(lease clientv3.LeaseID) string { return reserved + "/" + hexadecimal(lease) + "/" }

func hexadecimal(lease clientv3.LeaseID) string { return strconv.FormatInt(int64(lease), 16) }

// slot returns the end of a key: that of the n-th claim of a session in a line.
func slot(lease clientv3.LeaseID, n int) string {
	if n == 0 {
		return hexadecimal(lease)
	}
	return hexadecimal(lease) + "-" + strconv.Itoa(n)
}

// isSlot reports whether end is the end of a claim's key, which is attached to the lease.
func isSlot(end string, lease int64) bool {
	first, n, more := strings.Cut(end, "-")
	if more {
		if i, err := strconv.Atoi(n); err != nil || i < 1 {
			return false
		}
	}
	return lease != 0 && first == strconv.FormatInt(lease, 16)
}

// isClaim reports whether a key of a lease is that of a claim.
func (o *Options) isClaim(lease clientv3.LeaseID, key string) bool {
	_, slot := cutLast(key)
	return strings.HasPrefix(key, o.Namespace) && isSlot(slot, int64(lease))
}

// cutLast cuts a key at its last slash.
func cutLast(key string) (name, slot string) {
	at := max(strings.LastIndexByte(key, '/'), 0)
	return key[:at], strings.TrimPrefix(key[at:], "/")
}

// checkName returns an error for a name whose keys are those of sessions.
func checkName(name string) error {
	if name == reserved || strings.HasPrefix(name, reserved+"/") {
		return fmt.Errorf("name %q: the keys under %q are those of sessions: want another name: %w", name, reserved, driver.ErrName)
	}
	return nil
}

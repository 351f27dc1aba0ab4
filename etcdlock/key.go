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
//	NAME/LEASE       a claim of the session that has this lease, in lower-case hexadecimal digits, as package concurrency writes it
//	NAME/LEASE-1     the session's second claim of the name at a time, and so on
//	interlock:sessions/LEASE       who the session is
//	interlock:sessions/LEASE/CLAIM a mark: an operator has broken this claim
//
// All are attached to the lease and go with it. No key has anything random but the lease in it: to read the keys under a prefix etcd walks
// over those that were deleted there, until they are compacted, so a lock that is taken again and again must use the same ones.
const reserved = "interlock:sessions"

// maxName is far below what one request may have.
const maxName = 4096

// line begins the keys of a name's claims.
func (o *Options) line(name string) string { return o.Namespace + name + "/" }

// session is the key of a session, which begins those of its marks.
func (o *Options) session(lease clientv3.LeaseID) string {
	return o.Namespace + reserved + "/" + hexadecimal(lease)
}

// mark is what the keys of a session's marks have before the claim.
func mark(lease clientv3.LeaseID) string { return reserved + "/" + hexadecimal(lease) + "/" }

func hexadecimal(lease clientv3.LeaseID) string { return strconv.FormatInt(int64(lease), 16) }

// slot is the end of a key: the n-th claim of a session in a line.
func slot(lease clientv3.LeaseID, n int) string {
	if n == 0 {
		return hexadecimal(lease)
	}
	return hexadecimal(lease) + "-" + strconv.Itoa(n)
}

// isSlot reports whether a key that is attached to the lease ends as a claim's.
func isSlot(end string, lease int64) bool {
	first, n, more := strings.Cut(end, "-")
	if more {
		if i, err := strconv.Atoi(n); err != nil || i < 1 {
			return false
		}
	}
	return lease != 0 && first == strconv.FormatInt(lease, 16)
}

// checkName refuses a name that cannot be kept.
func checkName(name string) error {
	if name == reserved || strings.HasPrefix(name, reserved+"/") {
		return fmt.Errorf("name %q: the keys under %q are those of sessions: want another name: %w", name, reserved, driver.ErrName)
	}
	return nil
}

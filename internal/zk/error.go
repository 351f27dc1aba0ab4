package zk

import (
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/driver"
)

// Code is the answer to a request that the server does not carry out.
type Code int32

// The codes that callers look for, and those that have a text.
const (
	Inconsistent   Code = -2 // a request of a Multi that was not tried, since another one failed
	Unimplemented  Code = -6
	BadArguments   Code = -8
	NoNode         Code = -101
	NoAuth         Code = -102
	BadVersion     Code = -103
	NoChildren     Code = -108 // an ephemeral node can have none
	NodeExists     Code = -110
	NotEmpty       Code = -111
	SessionExpired Code = -112
	InvalidACL     Code = -114
	AuthFailed     Code = -115
	SessionMoved   Code = -118
	NotReadOnly    Code = -119
	LocalSession   Code = -120
	WantsSASL      Code = -124 // also of a login by SASL that has failed
	QuotaExceeded  Code = -125
	Throttled      Code = -127
)

var codeTexts = map[Code]string{
	Inconsistent: "not tried, since another request of the transaction failed", Unimplemented: "the server does not know this request",
	BadArguments: "the server takes the request for malformed", NoNode: "the node does not exist", NoAuth: "the access list of the node forbids it, or that of the one above it: want a user who has the right",
	BadVersion: "the node has another version", NoChildren: "an ephemeral node can have no children", NodeExists: "the node exists",
	NotEmpty: "the node has children", SessionExpired: "the session has expired", InvalidACL: "the access list is invalid: that of creators only wants a login",
	AuthFailed: "authentication failed", SessionMoved: "the session has moved to another connection",
	WantsSASL:    "the server wants a login by SASL, and has seen none that it knows",
	LocalSession: "the servers keep sessions to themselves (localSessionsEnabled), which can have no ephemeral nodes: want localSessionsUpgradingEnabled, too",
	NotReadOnly:  "the server is read-only, since it has no majority", QuotaExceeded: "the quota is exceeded", Throttled: "the server has too much to do",
}

// Error says what the code means.
func (c Code) Error() string {
	text, ok := codeTexts[c]
	if !ok {
		text = fmt.Sprintf("code %d", int32(c))
	}
	return "zookeeper: " + text
}

// Is reports whether the code is one of the errors of package driver.
func (c Code) Is(target error) bool {
	switch c {
	case SessionExpired:
		return target == driver.ErrSessionLost
	case NoAuth, InvalidACL, AuthFailed, BadArguments, NoChildren, Unimplemented, WantsSASL, LocalSession:
		return target == driver.ErrRefused
	case QuotaExceeded, NotReadOnly:
		return target == driver.ErrUnable || target == driver.ErrNotSent
	case Throttled:
		return target == driver.ErrNotSent
	}
	return false
}

// ErrUnanswered is the error of a request whose connection ended: it may have been carried out.
var ErrUnanswered = errors.New("zookeeper: the connection ended before the answer")

var (
	errExpired = fmt.Errorf("zookeeper: %w: the session has expired", driver.ErrSessionLost)
	errClosed  = fmt.Errorf("zookeeper: %w: it was closed", driver.ErrSessionLost)
)

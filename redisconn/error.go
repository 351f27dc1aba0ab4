package redisconn

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/lazyregexp"
)

// Error is what a server answered in place of a result.
type Error struct {
	Code string // the first word of the answer, such as READONLY
	Text string // the whole answer, but for what ParseError leaves out

	script bool // it is that of a command which a script ran
}

// Error implements error.
func (e *Error) Error() string { return e.Text }

// ParseError makes an Error of a server's answer. Left out are the arguments of a command that the
// server does not know, among which is the ID of a claim, and the place in the script where a
// command failed, which helps only its author.
func ParseError(text string) *Error {
	text, _, _ = strings.Cut(text, ", with args beginning with: ")
	at := inScript.FindStringIndex(text)
	if at != nil {
		text = text[:at[0]]
	}
	code, _, _ := strings.Cut(text, " ")
	return &Error{Code: strings.TrimSuffix(code, ":"), Text: text, script: at != nil}
}

var inScript = lazyregexp.New(` script: \S+, on @\S+$`)

// code says what an answer means for a lock.
type code struct {
	final bool   // asking again does not help
	means string // for people
}

// codes are the answers that a server gives instead of carrying out a command or a script's first
// write: nothing was changed. An answer that is not here leaves the outcome open.
var codes = map[string]code{
	"NOAUTH":      {true, "the server wants a password"},
	"WRONGPASS":   {true, "the server does not accept this user name and password"},
	"NOPERM":      {true, "this user lacks a right: want those of ACL in the lock's package"},
	"WRONGTYPE":   {true, "the key holds data of another type, so it is nobody's lock"},
	"CROSSSLOT":   {true, "the keys of one lock lie in different slots"},
	"CORRUPT":     {true, "what stands beside the lock is damaged: delete that key, or restore it"},
	"NEWLAYOUT":   {true, "a newer version of this library has written there: update this program"},
	"READONLY":    {false, "this server is a replica: the master has moved"},
	"LOADING":     {false, "the server is still loading its data"},
	"MISCONF":     {false, "the server cannot save to disk and takes no writes"},
	"OOM":         {false, "the server's memory is full"},
	"CLUSTERDOWN": {false, "the cluster does not cover every slot"},
	"TRYAGAIN":    {false, "the slot is being moved"},
	"MOVED":       {false, "the slot has moved"},
	"ASK":         {false, "the slot is being moved"},
	"BUSY":        {false, "the server is busy with another client's script"},
	"UNBLOCKED":   {false, "this server has become a replica: the master has moved"},
	"MASTERDOWN":  {false, "this server is a replica without a master"},
	"NOREPLICAS":  {false, "the server has fewer replicas than it wants for a write"},
	"NOSCRIPT":    {false, "the server does not know the script"},
	"UNKILLABLE":  {false, "the server is busy with another client's script"},
}

// forbidden is what Redis 7.0 answers, without a code, where a command in a script needs a right
// that the caller lacks.
const forbidden = "The user executing the script can't"

// Classify returns the error of a failed request so that it shows the outcome: an error that
// matches [driver.ErrRefused] or [driver.ErrNotSent] changed nothing, any other may have.
func Classify(err error) error {
	if err == nil || errors.Is(err, driver.ErrNotSent) || errors.Is(err, driver.ErrRefused) {
		return err
	}
	var answer *Error
	if errors.As(err, &answer) {
		c, known := codes[answer.Code]
		switch {
		case !known && strings.Contains(answer.Text, "invalid password"), !known && strings.Contains(answer.Text, "without any password"):
			return fmt.Errorf("%w: %s: %w", driver.ErrRefused, codes["WRONGPASS"].means, err)
		case !known && strings.Contains(answer.Text, "max number of clients"): // sent to a connection, before it is closed
			return fmt.Errorf("the server has no room for another connection: %w: %w", driver.ErrNotSent, err)
		case !known && strings.Contains(answer.Text, "No such master with that name"): // a Sentinel
			return fmt.Errorf("%w: the Sentinels know no master of this name: want one that they watch: %w", driver.ErrRefused, err)
		case !known && strings.Contains(answer.Text, "unknown command '"):
			return fmt.Errorf("%w: the server lacks a command, or has it by another name: want those of ACL in the lock's package: %w", driver.ErrRefused, err)
		case !known && strings.Contains(answer.Text, "Function not found"):
			return fmt.Errorf("%w: the server lacks the functions: want FUNCTION LOAD of Library in the lock's package: %w", driver.ErrRefused, err)
		case !known && strings.Contains(answer.Text, forbidden): // what the script did before stays done
			return fmt.Errorf("%s: %w", codes["NOPERM"].means, err)
		case !known:
			return err
		case answer.Code == "WRONGTYPE", answer.Code == "CORRUPT":
			return fmt.Errorf("%w: %w: %s: %w", driver.ErrRefused, driver.ErrBadData, c.means, err)
		case c.final:
			return fmt.Errorf("%w: %s: %w", driver.ErrRefused, c.means, err)
		}
		return fmt.Errorf("%s: %w: %w", c.means, driver.ErrNotSent, err)
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return fmt.Errorf("%w: %w", driver.ErrNotSent, err)
	}
	return err
}

// Unchanged is [Classify] for a request that changes nothing: without an answer it counts as not
// sent. An answer that Classify does not know is returned as it is.
func Unchanged(err error) error {
	err = Classify(err)
	var answer *Error
	if err == nil || errors.As(err, &answer) || errors.Is(err, driver.ErrNotSent) || errors.Is(err, driver.ErrRefused) {
		return err
	}
	return fmt.Errorf("%w: %w", driver.ErrNotSent, err)
}

// InScript reports whether err is an answer of a command that a script ran.
func InScript(err error) bool {
	var answer *Error
	return errors.As(err, &answer) && answer.script
}

// Is reports whether err is an answer with this code.
func Is(err error, code string) bool {
	var answer *Error
	return errors.As(err, &answer) && answer.Code == code
}

// Broken reports whether err says that a connection ended without an answer, so that whether the
// request was carried out is unknown, and that the same request can be sent at once.
func Broken(err error) bool {
	var op *net.OpError
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, net.ErrClosed) ||
		errors.As(err, &op) && op.Op != "dial" && !op.Timeout()
}

package shedlock

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/sessions"
)

// state is how a claim stands. It only moves forward.
type state uint8

const (
	out     state = iota // or nothing is known
	waiting              // which the table does not know
	held
	gone
)

// claim is one claim of a session, whose mutex guards it.
type claim struct {
	driver.Claim
	sessions.Departure
	state  state
	holder *driver.Holder
	void   time.Time // when the last request without an answer is void; zero where there is none
}

// check refuses a claim that cannot be kept.
func (d *Driver) check(c driver.Claim) error {
	why := ""
	switch n := utf8.RuneCountInString(c.Name); {
	case !validID(c.ID):
		why = fmt.Sprintf("a claim's ID of %d bytes: want one as driver.NewID makes them", len(c.ID))
	case c.Kind != driver.Mutex:
		why = fmt.Sprintf("a %s: ShedLock has mutexes alone", c.Kind)
	case n == 0 || n > d.longest:
		why = fmt.Sprintf("a name of %d characters: the table keeps 1 to %d", n, d.longest)
	case !utf8.ValidString(c.Name) || strings.ContainsRune(c.Name, 0):
		why = "a name with bytes that are no text: want UTF-8"
	case d.ascii && strings.IndexFunc(c.Name, func(r rune) bool { return r > '~' }) >= 0:
		why = fmt.Sprintf("name %q: a column of the table is not of character set utf8mb4, and keeps ASCII alone for certain", c.Name)
	default:
		return nil
	}
	return fmt.Errorf("shedlock: %w: %s", driver.ErrRefused, why)
}

// validID reports whether an ID is as driver.NewID makes them: such a one means nothing in SQL.
func validID(id string) bool {
	return len(id) == idLength && strings.IndexFunc(id, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	}) < 0
}

// What stands in locked_by begins with a mark that no other claim has. What comes after it is for people.
const (
	ours     = "interlock:"
	idLength = 22
	marked   = len(ours) + idLength
	longest  = 255 // of ShedLock's column
)

// lockedBy is what stands in locked_by: the mark, and user, host, process and name of the owner.
func lockedBy(id string, o driver.Owner) string {
	by := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || r == '\'' || r == '\\' {
			return '_'
		}
		return r
	}, fmt.Sprintf("%s%s %s %d %s", ours, id, strings.ReplaceAll(o.User+"@"+o.Host, " ", "_"), o.PID, o.Name))
	return by[:min(len(by), longest)]
}

// holder is a row as people see it.
func (r *row) holder() *driver.Holder {
	h := &driver.Holder{
		Kind: driver.Mutex, Weight: driver.All, Limit: driver.All, Held: true, Since: time.UnixMicro(r.at), Until: time.UnixMicro(r.until),
		PublicID: driver.PublicID(r.by + " " + strconv.FormatInt(r.at, 10)), Note: r.by, Foreign: true,
	}
	if id, isOurs := r.mine(); isOurs {
		f := append(strings.SplitN(r.by, " ", 4), "", "", "")
		user, host, _ := strings.Cut(f[1], "@")
		pid, _ := strconv.Atoi(f[2])
		h.PublicID, h.Owner, h.Note, h.Foreign = driver.PublicID(id), driver.Owner{User: user, Host: host, PID: pid, Name: f[3]}, "", false
	}
	return h
}

// mine returns the ID of a claim of ours.
func (r *row) mine() (id string, isOurs bool) {
	if len(r.by) < marked || !strings.HasPrefix(r.by, ours) || !validID(r.by[len(ours):marked]) {
		return "", false
	}
	return r.by[len(ours):marked], true
}

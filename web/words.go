package web

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/printable"
)

// ownerWords returns the owner of a claim in words.
func ownerWords(h driver.Holder) string {
	o := h.Owner
	what, where := o.Program, o.User
	if o.Name != "" && o.Name != fmt.Sprintf("%s/%s/%d", o.Host, o.Program, o.PID) {
		what = o.Name
	}
	if o.Host != "" {
		where = strings.TrimPrefix(where+"@"+o.Host, "@")
	}
	if o.PID != 0 {
		where += " pid " + strconv.Itoa(o.PID)
	}
	words := strings.TrimSpace(printable.Text(what) + " " + printable.Text(where))
	switch {
	case h.Foreign && words == "":
		return "another program"
	case h.Foreign:
		return "another program: " + words
	case words == "":
		return "unknown"
	}
	return words
}

// kindWords returns the kind of a claim in words.
func kindWords(h driver.Holder) string {
	switch {
	case h.Kind == driver.Permit && h.Limit == 0:
		return fmt.Sprintf("%d permits", h.Weight)
	case h.Kind == driver.Permit:
		return fmt.Sprintf("%d of %d permits", h.Weight, h.Limit)
	}
	return h.Kind.String()
}

// lineWords returns the state of a line in a word or two.
func lineWords(claims []driver.Holder) string {
	held, readers, permits, limit, broken := 0, 0, 0, 0, 0
	for _, h := range claims {
		if !h.Held {
			continue
		}
		held++
		if h.Broken {
			broken++
		}
		switch h.Kind {
		case driver.Read:
			readers++
		case driver.Permit:
			permits, limit = permits+h.Weight, h.Limit
		}
	}
	switch {
	case len(claims) == 0:
		return "free"
	case held == 0:
		return "waits"
	case broken == held:
		return "broken"
	case readers == 1:
		return "1 reads"
	case readers > 1:
		return fmt.Sprintf("%d read", readers)
	case permits > 0 && limit > 0:
		return fmt.Sprintf("%d of %d permits", permits, limit)
	case permits > 0:
		return fmt.Sprintf("%d permits", permits)
	}
	return "held"
}

// spanWords returns a span of time in its two largest units.
func spanWords(d time.Duration) string {
	s := int64(d / time.Second)
	switch {
	case d <= 0:
		return "0 s"
	case d < 100*time.Millisecond:
		return strconv.FormatInt(max(d.Milliseconds(), 1), 10) + " ms"
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Truncate(100*time.Millisecond).Seconds(), 'f', -1, 64) + " s"
	case s < 60:
		return fmt.Sprintf("%d s", s)
	case s < 3600:
		return fmt.Sprintf("%d min %d s", s/60, s%60)
	case s < 86400:
		return fmt.Sprintf("%d h %d min", s/3600, s/60%60)
	}
	return fmt.Sprintf("%d d %d h", s/86400, s/3600%24)
}

// microWords returns a span of microseconds in words.
func microWords(us int64) string {
	if us < 1000 {
		return strconv.FormatInt(us, 10) + " µs"
	}
	return strconv.FormatFloat(float64(us/10)/100, 'f', -1, 64) + " ms"
}

// numberWords returns a number with commas between its thousands.
func numberWords(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// errorWords returns an error of a store in one line.
func errorWords(err error) string {
	const most = 500
	s := printable.Text(strings.Join(strings.Fields(err.Error()), " "))
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

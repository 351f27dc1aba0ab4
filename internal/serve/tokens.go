package serve

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"
)

// The bounds of a file of tokens.
const (
	maxTokens      = 1000
	maxTokenFile   = 1 << 20
	shortestToken  = 16 // characters, so that nobody guesses one
	longestToken   = 512
	longestName    = 64
	tokenHint      = "as openssl rand -base64 24 makes them"
	everyName      = "*"
	expiresForm    = "2006-01-02"
	lineForm       = "token=SECRET or sha256=HEX or cert=NAME, then name=WHO read=PREFIX,… break=PREFIX,… expires=2027-01-31"
	lineFormBriefs = "token, sha256, cert, name, read, break and expires"
)

// An entry is a line of a file of tokens: a credential, whose it is, and what it may do.
//
//	# the owner of the token is ana, who may see all names and break those of the coupons
//	sha256=9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 name=ana read=* break=coupons/
//	token=b3BlbnNzbC1yYW5kLWJhc2U2NA name=ci read=jobs/,coupons/ expires=2027-01-31
//	cert=web-7.example.org read=*
//
// A credential without read and break may read the metrics.
type entry struct {
	hash        [sha256.Size]byte // of the token
	cert        string            // or the name in a client's certificate; then hash is unused
	name        string
	read, brk   []string  // prefixes of names; "" is every name
	expires     time.Time // zero for never
	line        int
	credentials int // of this line; there must be one
}

// readTokens reads a file of tokens. Its errors name the line and never quote it.
func readTokens(from io.Reader) (entries []*entry, err error) {
	in := bufio.NewScanner(io.LimitReader(from, maxTokenFile+1))
	in.Buffer(nil, 16<<10)
	seen := map[string]int{}
	size := 0
	for n := 1; in.Scan(); n++ {
		text := in.Text()
		if size += len(text) + 1; size > maxTokenFile {
			return nil, fmt.Errorf("it has more than %d bytes", maxTokenFile)
		}
		if text = strings.TrimSpace(text); text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		e, err := readEntry(text)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		e.line = n
		if first := seen[e.key()]; first > 0 {
			return nil, fmt.Errorf("line %d: this credential stands on line %d already", n, first)
		}
		seen[e.key()] = n
		if entries = append(entries, e); len(entries) > maxTokens {
			return nil, fmt.Errorf("line %d: more than %d credentials", n, maxTokens)
		}
	}
	switch err := in.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, errors.New("a line has more than 16384 bytes")
	case err != nil:
		return nil, err
	case len(entries) == 0:
		return nil, errors.New("it has no credential: want lines of " + lineForm)
	}
	return entries, nil
}

// key returns what no other line has.
func (e *entry) key() string { return e.cert + "\x00" + string(e.hash[:]) }

// readEntry reads a line.
func readEntry(text string) (*entry, error) {
	if !utf8.ValidString(text) {
		return nil, errors.New("it is not UTF-8")
	}
	e, given := &entry{}, map[string]bool{}
	for _, field := range strings.Fields(text) {
		key, value, ok := strings.Cut(field, "=")
		if !ok {
			return nil, errors.New("a word without =: want " + lineForm)
		}
		if given[key] {
			return nil, fmt.Errorf("%s= stands there twice", key) // key is known: set has seen it
		}
		if err := e.set(key, value); err != nil {
			return nil, err
		}
		given[key] = true
	}
	switch {
	case e.credentials != 1:
		return nil, fmt.Errorf("%d credentials: want one of token=, sha256= and cert=", e.credentials)
	case e.name == "" && e.cert == "":
		return nil, errors.New("no name=: want one, by which what is done is known later")
	case e.name == "":
		return e, e.set("name", e.cert)
	}
	return e, nil
}

// set sets one field of a line.
func (e *entry) set(key, value string) (err error) {
	switch key {
	case "token":
		e.credentials++
		if !isToken(value) || len(value) < shortestToken || len(value) > longestToken {
			return fmt.Errorf("token=: want %d to %d letters, digits and - . _ ~ + / =, %s", shortestToken, longestToken, tokenHint)
		}
		e.hash = sha256.Sum256([]byte(value))
	case "sha256":
		e.credentials++
		if n, err := hex.Decode(e.hash[:], []byte(value[:min(len(value), 2*sha256.Size)])); err != nil || n != sha256.Size || len(value) != 2*sha256.Size {
			return errors.New("sha256=: want 64 hexadecimal digits, as printf %s TOKEN | sha256sum prints them")
		}
		if e.hash == sha256.Sum256(nil) {
			return errors.New("sha256=: that is the hash of nothing, as of a variable that is not set: want the hash of a token, as printf %s TOKEN | sha256sum prints it")
		}
	case "cert":
		e.credentials++
		if value == "" || len(value) > 255 {
			return errors.New("cert=: want the common name in a client's certificate, or one of its names")
		}
		e.cert = value
	case "name":
		if !isName(value) {
			return fmt.Errorf("name=: want up to %d letters, digits and - . _ @ + : /", longestName)
		}
		e.name = value
	case "read":
		e.read, err = readPrefixes(key, value)
	case "break":
		e.brk, err = readPrefixes(key, value)
	case "expires":
		e.expires, err = readExpiry(value)
	default:
		return fmt.Errorf("a word that is none of %s", lineFormBriefs) // which may be a token
	}
	return err
}

// readPrefixes reads prefixes of names with commas between them, escaped as in URLs; * is every
// name.
func readPrefixes(key, value string) (prefixes []string, _ error) {
	for p := range strings.SplitSeq(value, ",") {
		text, err := url.PathUnescape(p)
		if err != nil || p == "" || !utf8.ValidString(text) {
			return nil, fmt.Errorf("%s=: want prefixes of names with commas between them, a blank as %%20, a comma as %%2C and a %% as %%25, or * for every name", key)
		}
		if p == everyName {
			text = ""
		}
		prefixes = append(prefixes, text)
	}
	return prefixes, nil
}

// readExpiry reads a day, which is the last one, or a time.
func readExpiry(value string) (time.Time, error) {
	if day, err := time.Parse(expiresForm, value); err == nil {
		return day.AddDate(0, 0, 1), nil
	}
	at, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return at, errors.New("expires=: want the last day as 2027-01-31, in UTC, or a time as 2027-01-31T18:00:00Z")
	}
	return at, nil
}

// expired reports whether its time is over.
func (e *entry) expired(now time.Time) bool { return !e.expires.IsZero() && !now.Before(e.expires) }

// isToken reports whether text is made of what RFC 6750 allows in a token.
func isToken(text string) bool {
	for _, c := range []byte(text) {
		if !isAlphanumeric(c) && !strings.ContainsRune("-._~+/=", rune(c)) {
			return false
		}
	}
	return text != ""
}

// isName reports whether text can be the name of a principal, which stands in logs.
func isName(text string) bool {
	for _, c := range []byte(text) {
		if !isAlphanumeric(c) && !strings.ContainsRune("-._@+:/", rune(c)) {
			return false
		}
	}
	return text != "" && len(text) <= longestName
}

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

package serve

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

const secret = "correct-horse-battery" // a token

func hashOf(token string) string {
	h := sha256.Sum256([]byte(token))
	return hex.EncodeToString(h[:])
}

// What a line says is what its owner may do.
func TestTokensAreRead(t *testing.T) {
	t.Parallel()
	entries, err := readTokens(strings.NewReader(`# a comment

token=` + secret + ` name=ana read=* break=coupons/,jobs/a%20b
  sha256=` + hashOf("another-token-of-somebody") + `	name=ci@build read=a%2Cb,c%25 expires=2027-01-31
cert=web-7.example.org read=web/ expires=2027-01-31T18:00:00+01:00
token=0123456789abcdef name=prometheus
`))
	if err != nil {
		t.Fatal(err)
	}
	type seen struct {
		name, cert, expires string
		read, brk           []string
	}
	var got []seen
	for _, e := range entries {
		s := seen{name: e.name, cert: e.cert, read: e.read, brk: e.brk}
		if !e.expires.IsZero() {
			s.expires = e.expires.UTC().Format(time.RFC3339)
		}
		got = append(got, s)
	}
	want := []seen{
		{name: "ana", read: []string{""}, brk: []string{"coupons/", "jobs/a b"}},
		{name: "ci@build", read: []string{"a,b", "c%"}, expires: "2027-02-01T00:00:00Z"},
		{name: "web-7.example.org", cert: "web-7.example.org", read: []string{"web/"}, expires: "2027-01-31T17:00:00Z"},
		{name: "prometheus"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read\n%+v, want\n%+v", got, want)
	}
	if entries[0].hash != sha256.Sum256([]byte(secret)) || hex.EncodeToString(entries[1].hash[:]) != hashOf("another-token-of-somebody") {
		t.Error("a token and its SHA-256 are not the same")
	}
}

// A line that is wrong is named by its number and by what is wanted, and no word of it is quoted:
// it may be a token.
func TestWrongTokensAreRefused(t *testing.T) {
	t.Parallel()
	good := "token=" + secret + " name=ana read=*"
	for _, c := range []struct{ text, says string }{
		{"", "no credential"},
		{"# nothing else\n", "no credential"},
		{secret, "line 1: a word without ="},
		{secret + " ana read", "a word without ="},
		{"ana=" + secret, "none of token, sha256"},
		{good + " " + secret + "=x", "none of token"},
		{"token=" + secret, "no name="},
		{"name=ana read=*", "0 credentials"},
		{good + " sha256=" + hashOf("x"), "2 credentials"},
		{good + " cert=a", "2 credentials"},
		{good + " token=" + secret, "token= stands there twice"},
		{good + " read=b", "read= stands there twice"},
		{"token=short name=ana", "want 16 to 512"},
		{"token=" + strings.Repeat("a", 513) + " name=ana", "want 16 to 512"},
		{"token=ünïcode-and-long-enough name=ana", "want 16 to 512"},
		{"token=with\"quotes-and-long-enough name=ana", "want 16 to 512"},
		{"sha256=" + hashOf("x")[:63] + " name=ana", "64 hexadecimal digits"},
		{"sha256=" + hashOf("x") + "0 name=ana", "64 hexadecimal digits"},
		{"sha256=" + strings.Repeat("g", 64) + " name=ana", "64 hexadecimal digits"},
		{"sha256=" + hashOf("") + " name=ana", "the hash of nothing"},
		{"token=" + secret + " name=", "name=: want"},
		{"token=" + secret + " name=a;b", "name=: want"},
		{"token=" + secret + " name=" + strings.Repeat("n", 65), "name=: want"},
		{"cert= read=*", "cert=: want"},
		{"cert=O=Example,CN=x read=*", "name=: want"},
		{good + " break=", "break=: want prefixes"},
		{good + " break=a,,b", "break=: want prefixes"},
		{good + " break=%zz", "break=: want prefixes"},
		{good + " break=%ff", "break=: want prefixes"},
		{good + " expires=tomorrow", "expires=: want the last day"},
		{good + " expires=2027-13-01", "expires=: want the last day"},
		{good + "\n" + good, "line 2: this credential stands on line 1"},
		{good + "\n\nsha256=" + hashOf(secret) + " name=b", "line 3: this credential stands on line 1"},
		{good + " read=\xff", "not UTF-8"},
		{"#" + strings.Repeat("x", 20<<10), "more than 16384 bytes"},
		{strings.Repeat("#"+strings.Repeat("x", 1000)+"\n", 1100), "more than 1048576 bytes"},
	} {
		entries, err := readTokens(strings.NewReader(c.text))
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%.80q: %d entries and error %v, want %q", c.text, len(entries), err, c.says)
		} else if strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), hashOf("x")[:60]) {
			t.Errorf("the error quotes a credential: %v", err)
		}
	}
	var many strings.Builder
	for i := range maxTokens + 1 {
		fmt.Fprintf(&many, "token=0123456789abcdef%d name=n\n", i)
	}
	if _, err := readTokens(strings.NewReader(many.String())); err == nil || !strings.Contains(err.Error(), "more than 1000 credentials") {
		t.Errorf("%d tokens: %v", maxTokens+1, err)
	}
}

// Whatever a file holds, it is read or refused, and an error has no word of it.
func FuzzTokenFile(f *testing.F) {
	f.Add("token=" + secret + " name=ana read=*")
	f.Add("cert=a read=x%20y break=* expires=2027-01-31\n# x\nsha256=" + hashOf("x") + " name=b")
	f.Add("token==== name=\x00")
	f.Fuzz(func(t *testing.T, text string) {
		entries, err := readTokens(strings.NewReader(text))
		if err == nil != (len(entries) > 0) {
			t.Fatalf("%d entries, and error %v", len(entries), err)
		}
		for _, e := range entries {
			if !isName(e.name) || e.credentials != 1 || slices.Contains(e.read, "*") && !strings.Contains(text, "%2") {
				t.Errorf("entry %+v of %q", e, text)
			}
		}
		if err == nil {
			return
		}
		for _, word := range strings.Fields(text) {
			if _, value, ok := strings.Cut(word, "="); ok {
				word = value
			}
			if len(word) >= shortestToken && strings.Contains(err.Error(), word) && !strings.Contains(lineForm+tokenHint, word) {
				t.Errorf("the error quotes %q: %v", word, err)
			}
		}
	})
}

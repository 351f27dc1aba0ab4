package memcache

import (
	"bufio"
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/driver"
)

func TestRepliesAreRead(t *testing.T) {
	for text, want := range map[string]Reply{
		"HD\r\n":    {Status: Done},
		"HD c7\r\n": {Status: Done, Version: Version{CAS: 7}},
		"NS c0\r\n": {Status: NotStored},
		"EX\r\n":    {Status: Changed},
		"NF\r\n":    {Status: NotFound},
		"EN\r\n":    {Status: None},
		"MN\r\n":    {Status: Alive},
		"VA 2 c18446744073709551615 t-1\r\nab\r\n": {Status: Value, Value: []byte("ab"), Version: Version{CAS: 1<<64 - 1}, Left: -1},
		"VA 4 s4 t5\r\n\r\n\r\n\r\n":               {Status: Value, Value: []byte("\r\n\r\n"), Left: 5},
		"VA 0\r\n\r\n":                             {Status: Value, Value: []byte{}},
	} {
		got, err := readReply(bufio.NewReader(strings.NewReader(text)))
		if err != nil || got.Status != want.Status || !bytes.Equal(got.Value, want.Value) || got.CAS != want.CAS || got.Left != want.Left {
			t.Errorf("%q is read as %+v, %v", text, got, err)
		}
	}
}

// What the server could not do is an answer like any other. Of what is none nobody knows where the
// next one begins.
func TestErrorsOfTheServer(t *testing.T) {
	r, err := readReply(bufio.NewReader(strings.NewReader("SERVER_ERROR out of memory storing object\r\n")))
	if err != nil || !errors.Is(r.err, driver.ErrUnable) || !errors.Is(r.err, driver.ErrNotSent) {
		t.Errorf("a server whose memory is full: %+v, %v", r, err)
	}
	if r, err := readReply(bufio.NewReader(strings.NewReader("SERVER_ERROR object too large for cache\r\n"))); err != nil || r.err == nil || errors.Is(r.err, driver.ErrNotSent) {
		t.Errorf("another error: %+v, %v", r, err)
	}
	for _, text := range []string{
		"CLIENT_ERROR bad command line format\r\n", "ERROR\r\n", "OK\r\n", "STORED\r\n", "HD\n", "\r\n", "", "HD", "VA\r\n", "VA x\r\n", "VA -1\r\n", "VA 99999999999\r\n",
		"VA 2\r\nabc\r\n", "VA 5\r\nab\r\n", "HD cx\r\n", "VA 1 t\r\na\r\n", strings.Repeat("x", 5000) + "\r\n",
	} {
		if r, err := readReply(bufio.NewReader(strings.NewReader(text))); err == nil {
			t.Errorf("%.20q is read as %+v", text, r)
		} else if len(err.Error()) > 300 {
			t.Errorf("%.20q: an error of %d bytes", text, len(err.Error()))
		}
	}
}

// FuzzReply: whatever comes is read or refused, and what was read is no longer than what came.
func FuzzReply(f *testing.F) {
	for _, s := range []string{"HD c1\r\n", "VA 2 c1 t5\r\nab\r\n", "SERVER_ERROR out of memory\r\n", "EN\r\nNS\r\n", "VA 16777217\r\n", "CLIENT_ERROR x\r\nERROR\r\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bufio.NewReader(bytes.NewReader(b))
		total := 0
		for {
			reply, err := readReply(r)
			if err != nil {
				return
			}
			if total += len(reply.Value) + 4; total > len(b) {
				t.Fatalf("%d bytes are read as %d", len(b), total)
			}
			if reply.err == nil && len(reply.Status) != 2 {
				t.Fatalf("status %q", reply.Status)
			}
		}
	})
}

func TestKeysAreChecked(t *testing.T) {
	for _, key := range []string{"", "a b", "a\r\nflush_all", "a\x00", "a\x7f", strings.Repeat("x", 251)} {
		if CheckKey(key) == nil {
			t.Errorf("%.20q is a key", key)
		}
	}
	for _, key := range []string{"a", "ä/ö", strings.Repeat("x", 250)} {
		if err := CheckKey(key); err != nil {
			t.Errorf("%.20q: %v", key, err)
		}
	}
}

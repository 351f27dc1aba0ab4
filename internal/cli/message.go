package cli

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// oneLine returns an error as people read it.
func oneLine(err error) string { return inOneLine(err.Error()) }

// inOneLine returns a message in one line, which says each thing once. An error grows as it comes
// up, and each on its way tells what it knows: the store where it wanted to connect to, package net
// as well, and a client that has tried it both ways says all of it again.
//
//	redlock: master 1 (a:1): not sent: redisconn: connect to a:1: not sent: dial tcp a:1: refused
//	redlock: master 1 (a:1): not sent: redisconn: refused
//
// What is left out are lines that another one ends with; and in a part, up to a semicolon, what
// stood there between colons before, unless it is quoted, and what is no more than a word or two
// and an address that was said.
func inOneLine(message string) string {
	var lines []string
	// gRPC writes a status so.
	message = strings.NewReplacer("rpc error: code = ", "", ": desc = ", ": ", " desc = ", ": ").Replace(message)
	for line := range strings.SplitSeq(message, "\n") {
		line = strings.TrimSpace(line)
		if last := len(lines) - 1; last >= 0 && strings.HasSuffix(lines[last], ":") {
			line, lines = lines[last]+" "+line, lines[:last]
		}
		line = once(line)
		if !slices.ContainsFunc(lines, func(said string) bool { return strings.HasSuffix(said, line) }) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}

// once leaves out of a line what its parts say again.
func once(line string) string {
	var b strings.Builder
	for i, part := range strings.Split(line, "; ") {
		if i > 0 {
			b.WriteString("; ")
		}
		begin, said := b.Len(), []string{}
		for label := range strings.SplitSeq(part, ": ") {
			words, before := strings.Fields(label), b.String()
			quoted := strings.Count(before, `"`)%2 == 1 || strings.Count(before, "(") > strings.Count(before, ")")
			if slices.Contains(said, label) && !quoted {
				continue
			}
			if n := len(words); n > 1 && n <= 3 && isAddress(words[n-1]) && strings.Contains(before[begin:], words[n-1]) {
				continue
			}
			if len(said) > 0 {
				b.WriteString(": ")
			}
			b.WriteString(label)
			said = append(said, label)
		}
	}
	return b.String()
}

// isAddress reports whether a word is a host and a port.
func isAddress(word string) bool {
	at := strings.LastIndexByte(word, ':')
	if at <= 0 {
		return false
	}
	_, err := strconv.ParseUint(word[at+1:], 10, 16)
	return err == nil
}

// inStore is an error of a store with the store's name, where it does not say itself at which
// server.
func inStore(err error, store string) error {
	if u, wrong := url.Parse(store); wrong == nil && u.Host != "" {
		for host := range strings.SplitSeq(u.Host, ",") {
			if strings.Contains(err.Error(), host) {
				return err
			}
		}
	}
	return fmt.Errorf("%w; the store is %s", err, store)
}

package broken

import (
	"context"
	"fmt"
	"hash/crc32"
	"iter"
	"net/url"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/interlock-go/interlock/driver"
)

// moreNaming are faults about names and how they are listed.
var moreNaming = []Driver{
	{
		Name: "NulEndsName", Law: "Law09_Names", Says: "mixed up with",
		Fault: "A name ends at its first NUL, as a string of C does.",
		new: renaming(func(n string) string {
			n, _, _ = strings.Cut(n, "\x00")
			return n
		}),
	},
	{
		Name: "DropsControls", Law: "Law09_Names", Says: "mixed up with",
		Fault: "Control characters, which a key may not have, are left out.",
		new: renaming(func(n string) string {
			return string(slices.DeleteFunc([]byte(n), func(b byte) bool { return b < ' ' || b == 0x7f }))
		}),
	},
	{
		Name: "MendsUTF8", Law: "Law09_Names", Says: "mixed up with",
		Fault: "Bytes that are no UTF-8 become the replacement character, as in JSON.",
		new:   renaming(func(n string) string { return strings.ToValidUTF8(n, "\uFFFD") }),
	},
	{
		Name: "ComposesAccents", Law: "Law09_Names", Says: "mixed up with",
		Fault: "A letter and its accent become one character, as a file system does it.",
		new: renaming(strings.NewReplacer(
			"e\u0301", "é", "e\u0300", "è", "a\u0301", "á", "a\u0300", "à", "a\u0308", "ä", "o\u0308", "ö", "u\u0308", "ü",
			"o\u0301", "ó", "n\u0303", "ñ", "c\u0327", "ç", "A\u030a", "Å", "a\u030a", "å", "E\u0301", "É", "U\u0308", "Ü", "\u212b", "Å").Replace),
	},
	{
		Name: "StripsAccents", Law: "Law09_Names", Says: "mixed up with",
		Fault: "An accent does not count, as in many a collation.",
		new: renaming(strings.NewReplacer(
			"é", "e", "è", "e", "ê", "e", "á", "a", "à", "a", "ä", "a", "å", "a", "ö", "o", "ó", "o", "ü", "u", "ñ", "n", "ç", "c",
			"É", "E", "Ä", "A", "Ö", "O", "Ü", "U").Replace),
	},
	{
		Name: "FoldsBeyondASCII", Law: "Law09_Names", Says: "mixed up with",
		Fault: "Case does not count in letters beyond ASCII.",
		new: renaming(func(n string) string {
			return strings.Map(func(r rune) rune {
				if r > unicode.MaxASCII {
					return unicode.ToLower(r)
				}
				return r
			}, n)
		}),
	},
	{
		Name: "ThreeBytes", Law: "Law09_Names", Says: "mixed up with",
		Fault: "A character of four bytes becomes a question mark, as in utf8mb3.",
		new: renaming(func(n string) string {
			var b strings.Builder
			for len(n) > 0 {
				r, size := utf8.DecodeRuneInString(n)
				if r > 0xFFFF {
					b.WriteByte('?')
				} else {
					b.WriteString(n[:size])
				}
				n = n[size:]
			}
			return b.String()
		}),
	},
	{
		Name: "DecodesPercent", Law: "Law09_Names", Says: "mixed up with",
		Fault: "A name is a path of a URL, and is decoded.",
		new: renaming(func(n string) string {
			if d, err := url.PathUnescape(n); err == nil {
				return d
			}
			return n
		}),
	},
	{
		Name: "PlusIsBlank", Law: "Law09_Names", Says: "mixed up with",
		Fault: "A plus in a name is a blank, as in a form.",
		new:   renaming(strings.NewReplacer("+", " ").Replace),
	},
	{
		Name: "TrimsBefore", Law: "Law09_Names", Says: "mixed up with",
		Fault: "Blanks at the start of a part of a name do not count.",
		new: renaming(func(n string) string {
			i := strings.LastIndexByte(n, '/') + 1
			return n[:i] + strings.TrimLeft(n[i:], " \t\n")
		}),
	},
	{
		Name: "TrimsLineEnd", Law: "Law09_Names", Says: "mixed up with",
		Fault: "A line feed at the end of a name does not count.",
		new:   renaming(func(n string) string { return strings.TrimRight(n, "\r\n") }),
	},
	{
		Name: "TrimsSlash", Law: "Law09_Names", Says: "mixed up with",
		Fault: "A slash at the end of a name does not count.",
		new:   renaming(func(n string) string { return strings.TrimSuffix(n, "/") }),
	},
	{
		Name: "MergesSlashes", Law: "Law09_Names", Says: "mixed up with",
		Fault: "Two slashes are one.",
		new:   renaming(func(n string) string { return strings.ReplaceAll(n, "//", "/") }),
	},
	{
		Name: "BackslashIsSlash", Law: "Law09_Names", Says: "mixed up with",
		Fault: "A backslash is a slash, as in a path of Windows.",
		new:   renaming(func(n string) string { return strings.ReplaceAll(n, `\`, "/") }),
	},
	{
		Name: "IgnoresInvisible", Law: "Law09_Names", Says: "mixed up with",
		Fault: "Characters without a width do not count, as in a collation of ICU.",
		new:   renaming(strings.NewReplacer("\u200b", "", "\u200c", "", "\u200d", "", "\u00ad", "", "\ufeff", "").Replace),
	},
	{
		Name: "EscapesPoorly", Law: "Law09_Names", Says: "mixed up with",
		Fault: "What a key may not have becomes an underscore.",
		new: renaming(func(n string) string {
			return strings.Map(func(r rune) rune {
				if strings.ContainsRune(" :*?\"<>|", r) {
					return '_'
				}
				return r
			}, n)
		}),
	},
	{
		Name: "HashesTo32Bits", Law: "Law09_Names", Says: "mixed up with",
		Fault: "A name is kept by its CRC of 32 bits, as the key of an advisory lock.",
		new:   renaming(func(n string) string { return fmt.Sprint("crc", crc32.ChecksumIEEE([]byte(n))) }),
	},
	{
		Name: "HashesAsJava", Law: "Law09_Names", Says: "mixed up with",
		Fault: "A name is kept by its hashCode, in which Aa is BB.",
		new: renaming(func(n string) string {
			var h int32
			for i := range len(n) {
				h = 31*h + int32(n[i])
			}
			return fmt.Sprint("hash", h)
		}),
	},
	{
		Name: "CutsAt1000", Law: "Law09_Names", Says: "mixed up with",
		Fault: "A key holds 1000 bytes.",
		new:   renaming(func(n string) string { return n[:min(len(n), 1000)] }),
	},
	{
		Name: "CutsAt4000", Law: "Law09_Names", Says: "mixed up with",
		Fault: "A column holds 4000 bytes.",
		new:   renaming(func(n string) string { return n[:min(len(n), 4000)] }),
	},
	{
		Name: "ReleaseCutsName", Law: "Law09_Names", Says: "had not been held",
		Fault: "The statement of Release has a parameter of 100 bytes, and so releases nothing where the name is longer.",
		new: func() *fault {
			return &fault{release: func(s *session, ctx context.Context, c driver.Claim) (bool, error) {
				c.Name = c.Name[:min(len(c.Name), 100)]
				return s.Session.Release(ctx, c)
			}}
		},
	},
	{
		Name: "NulIsUnknown", Law: "Law09_Names", Says: "(outcome unknown): want it held, or an error that matches ErrRefused",
		Fault: "A name with a NUL gets an error that says nothing.",
		new: func() *fault {
			return &fault{acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				if strings.Contains(c.Name, "\x00") {
					return driver.Grant{}, fmt.Errorf("invalid byte sequence in %q", c.Name)
				}
				return s.acquire(ctx, c)
			}}
		},
	},
	{
		Name: "LongIsUnknown", Law: "Law09_Names", Says: "of 255 bytes was answered with a key of 255 bytes",
		Fault: "A name of more than 250 bytes gets an error that says nothing.",
		new: func() *fault {
			return &fault{acquire: func(s *session, ctx context.Context, c driver.Claim) (driver.Grant, error) {
				if len(c.Name) > 250 {
					return driver.Grant{}, fmt.Errorf("a key of %d bytes", len(c.Name))
				}
				return s.acquire(ctx, c)
			}}
		},
	},
	{
		Name: "ListsLike", Law: "Law09_Names", Says: "which does not begin with that",
		Fault: "The prefix of Lines is a pattern of LIKE, in which _ and % stand for others.",
		new: listing(func(name, prefix string) bool {
			return matches(name, prefix+"%", '_', '%')
		}),
	},
	{
		Name: "ListsGlob", Law: "Law09_Names", Says: "which does not begin with that",
		Fault: "The prefix of Lines is a pattern of a shell, in which ? and * stand for others.",
		new: listing(func(name, prefix string) bool {
			return matches(name, prefix+"*", '?', '*')
		}),
	},
	{
		Name: "ListsWithoutCase", Law: "Law09_Names", Says: "which does not begin with that",
		Fault: "The prefix of Lines is compared without case.",
		new: listing(func(name, prefix string) bool {
			return strings.HasPrefix(strings.ToLower(name), strings.ToLower(prefix))
		}),
	},
	{
		Name: "ListsFolders", Law: "Law09_Names", Says: "does not have",
		Fault: "The prefix of Lines is a folder: names that go on without a slash are left out.",
		new: listing(func(name, prefix string) bool {
			return strings.HasPrefix(name, strings.TrimSuffix(prefix, "/")+"/") || name == prefix
		}),
	},
	{
		Name: "ListsAll", Law: "Law09_Names", Says: "which does not begin with that",
		Fault: "Lines does not look at the prefix.",
		new:   listing(func(string, string) bool { return true }),
	},
	{
		Name: "ListsBackwards", Law: "Law09_Names", Says: "Lines yields names out of order",
		Fault: "Lines come in the order of the store's hashes, and not of names.",
		new: listed(func(_ *layer, _ string, lines []driver.Line) []driver.Line {
			slices.Reverse(lines)
			return lines
		}),
	},
	{
		Name: "ListsFirstPage", Law: "Law09_Names", Says: "does not have",
		Fault: "Lines answers with one page of a hundred names.",
		new: listed(func(_ *layer, _ string, lines []driver.Line) []driver.Line {
			return lines[:min(len(lines), 100)]
		}),
	},
	{
		Name: "ListsNamesOnly", Law: "Also_Inspector", Says: "Lines shows",
		Fault: "Lines has names without claims.",
		new: listed(func(_ *layer, _ string, lines []driver.Line) []driver.Line {
			for i := range lines {
				lines[i].Claims = nil
			}
			return lines
		}),
	},
	{
		Name: "ListsHolders", Law: "Also_Inspector", Says: "Lines shows",
		Fault: "Lines leaves out who waits.",
		new: listed(func(_ *layer, _ string, lines []driver.Line) []driver.Line {
			for i := range lines {
				lines[i].Claims = slices.DeleteFunc(lines[i].Claims, func(h driver.Holder) bool { return !h.Held })
			}
			return lines
		}),
	},
	{
		Name: "ListsRest", Law: "Law09_Names", Says: "does not have",
		Fault: "The names in Lines are without the prefix that was asked for.",
		new: listed(func(_ *layer, prefix string, lines []driver.Line) []driver.Line {
			for i := range lines {
				lines[i].Name = strings.TrimPrefix(lines[i].Name, prefix)
			}
			return lines
		}),
	},
	{
		Name: "ListsTheEmpty", Law: "Also_Inspector", Says: "want that of /a alone",
		Fault: "Lines shows names that had claims once.",
		new: func() *fault {
			known := &owned{}
			f := listed(func(l *layer, prefix string, lines []driver.Line) []driver.Line {
				known.mu.Lock()
				defer known.mu.Unlock()
				for _, c := range known.claims {
					has := slices.ContainsFunc(lines, func(o driver.Line) bool { return o.Name == c.Name })
					if strings.HasPrefix(c.Name, prefix) && !has {
						lines = append(lines, l.look(c.Name))
					}
				}
				slices.SortFunc(lines, func(a, b driver.Line) int { return strings.Compare(a.Name, b.Name) })
				return lines
			})()
			f.acquire = known.acquire
			return f
		},
	},
	{
		Name: "ListsNoReaders", Law: "Law09_Names", Says: "does not have",
		Fault: "Lines reads the table of exclusive claims.",
		new: listed(func(_ *layer, _ string, lines []driver.Line) []driver.Line {
			return slices.DeleteFunc(lines, func(l driver.Line) bool { return !l.Claims[0].Kind.Exclusive() })
		}),
	},
}

// renaming is a store that keeps each name under another one, and shows the first name that it was
// used by.
func renaming(of func(string) string) func() *fault {
	return func() *fault {
		var mu sync.Mutex
		first := map[string]string{}
		back := func(line *driver.Line) {
			mu.Lock()
			defer mu.Unlock()
			if n, known := first[line.Name]; known {
				line.Name = n
			}
		}
		return &fault{
			name: func(n string) string {
				kept := of(n)
				mu.Lock()
				defer mu.Unlock()
				if first[kept] == "" {
					first[kept] = n
				}
				return kept
			},
			line: func(_ *layer, line *driver.Line) { back(line) },
			lines: func(l *layer, ctx context.Context, prefix string) ([]driver.Line, error) {
				lines, err := l.memory.Lines(ctx, "")
				for i := range lines {
					back(&lines[i])
				}
				lines = slices.DeleteFunc(lines, func(line driver.Line) bool { return !strings.HasPrefix(line.Name, prefix) })
				slices.SortFunc(lines, func(a, b driver.Line) int { return strings.Compare(a.Name, b.Name) })
				return lines, err
			},
			watch: func(_ *layer, lines iter.Seq2[driver.Line, error]) iter.Seq2[driver.Line, error] {
				return func(yield func(driver.Line, error) bool) {
					for line, err := range lines {
						if back(&line); !yield(line, err) {
							return
						}
					}
				}
			},
			breaks: func(l *layer, ctx context.Context, name, publicID string, fence uint64, now bool) error {
				return l.memory.Break(ctx, of(name), publicID, fence, now)
			},
		}
	}
}

// listing is a store whose Lines has the names that has picks.
func listing(has func(name, prefix string) bool) func() *fault {
	return func() *fault {
		return &fault{lines: func(l *layer, ctx context.Context, prefix string) ([]driver.Line, error) {
			lines, err := l.memory.Lines(ctx, "")
			return slices.DeleteFunc(lines, func(o driver.Line) bool { return !has(o.Name, prefix) }), err
		}}
	}
}

// listed passes the answers of Lines on through of.
func listed(of func(l *layer, prefix string, lines []driver.Line) []driver.Line) func() *fault {
	return func() *fault {
		return &fault{lines: func(l *layer, ctx context.Context, prefix string) ([]driver.Line, error) {
			lines, err := l.memory.Lines(ctx, prefix)
			return of(l, prefix, lines), err
		}}
	}
}

// matches reports whether s is what the pattern says, in which one stands for any byte and many for
// any number.
func matches(s, pattern string, one, many byte) bool {
	switch {
	case pattern == "":
		return s == ""
	case pattern[0] == many:
		return matches(s, pattern[1:], one, many) || s != "" && matches(s[1:], pattern, one, many)
	case s == "" || pattern[0] != one && pattern[0] != s[0]:
		return false
	}
	return matches(s[1:], pattern[1:], one, many)
}

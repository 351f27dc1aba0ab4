package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/printable"
)

// hostile are lines such as nobody wants to see: names and owners of any length and script, the
// longest times and tokens.
func hostile() []driver.Line {
	now := time.Now()
	holder := func(o driver.Owner) driver.Holder {
		return driver.Holder{
			PublicID: "0123456789ab", Owner: o, Kind: driver.Permit, Weight: 100_000, Limit: driver.All, Held: true, Broken: true, Note: strings.Repeat("a note ", 30),
			Since: now.Add(-70 * 24 * time.Hour), Until: now.Add(700*24*time.Hour - time.Second), Fence: 1<<64 - 1, Passes: 1 << 30,
		}
	}
	var lines []driver.Line
	for i, name := range []string{
		"job", strings.Repeat("a/b", 340), strings.Repeat("注文", 170), strings.Repeat("a\u202e", 200), "e" + strings.Repeat("\u0301", 500), "\t\n" + strings.Repeat("\xff", 90),
	} {
		o := driver.Owner{Program: "shop", User: "ann", Host: "web-1", PID: 12345}
		switch i {
		case 1:
			o.Host = strings.Repeat("x.", 120) + "example.org"
		case 2:
			o.Name = strings.Repeat("在庫 ", 80)
		case 3:
			o = driver.Owner{}
		}
		lines = append(lines, driver.Line{Name: name, Claims: []driver.Holder{holder(o), {PublicID: "0", Kind: driver.Mutex, Owner: o}}})
	}
	return lines
}

// However long names, owners and notes are, and of whatever script, no row is wider than it may be,
// and of what is cut both ends are left.
func TestListFits(t *testing.T) {
	t.Parallel()
	for columns, limit := range map[int]int{0: 80, 40: 80, 80: 80, 132: 132} {
		var out bytes.Buffer
		printClaims(terminal{out: &out, columns: columns}, hostile(), "narrow")
		rows := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		if len(rows) != 13 {
			t.Fatalf("%d rows, want a header and 12:\n%s", len(rows), &out)
		}
		for _, row := range rows {
			if n := width(row); n > limit {
				t.Errorf("%d cells where %d are, want %d at most: %s", n, columns, limit, row)
			}
			if n := len(strings.Fields(row)); n != narrow {
				t.Errorf("%d fields, want %d: %s", n, narrow, row)
			}
		}
		for _, want := range []string{"a/ba/b", "…", "在庫", ":12345 ", "18446744073709551615"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("nowhere %q:\n%s", want, &out)
			}
		}
		if t.Failed() {
			t.Logf("%d columns:\n%s", columns, &out)
		}
	}
}

// With -o wide nothing is cut, and awk reads every column but the name and the note.
func TestWideListHasAll(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	lines := hostile()
	printClaims(terminal{out: &out, columns: 80}, lines, "wide")
	for _, l := range lines {
		for _, h := range l.Claims {
			for _, want := range []string{printable.Text(l.Name) + " ", " " + field(h) + " ", " " + h.PublicID + " ", strings.TrimSpace(h.Note) + "\n", " " + kind(h) + " "} {
				if !strings.Contains(out.String(), want) {
					t.Errorf("nowhere %q", want)
				}
			}
		}
	}
	if strings.Contains(out.String(), "…") {
		t.Error("something is cut")
	}
	if t.Failed() {
		t.Log(out.String())
	}
}

// A text is cut in the middle, by cells and never through a character.
func TestShorten(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text  string
		cells int
		want  string
	}{
		{"job", 3, "job"},
		{"coupons/42", 10, "coupons/42"},
		{"coupons/42", 9, "coup…s/42"},
		{"coupons/42", 4, "co…2"},
		{"coupons/42", 2, "c…"},
		{"coupons/42", 1, "…"},
		{"注文番号", 8, "注文番号"},
		{"注文番号", 7, "注…番号"},
		{"注文番号", 6, "注…号"},
		{"注文番号", 3, "…号"},
		{`tags\U000e0041\U000e0042`, 20, `tags…\U000e0042`},
		{`tags\U000e0041\U000e0042`, 12, `tags…`},
		{`bidi\u202ejob\x9b`, 14, `bidi…job\x9b`},
		{`a\nbc\nd`, 6, `a\n…d`},
		{`C:\u and more`, 8, `C:\u…ore`},
		{"abcdéfgh", 6, "abc…gh"},
		{"abcdefe\u0301", 5, "ab…fe\u0301"},
		{"abcdefe\u0301", 3, "a…e\u0301"},
	} {
		if got := shorten(c.text, c.cells); got != c.want || width(got) > c.cells {
			t.Errorf("%q in %d cells: %q, %d wide; want %q", c.text, c.cells, got, width(got), c.want)
		}
	}
}

// Who needs less than an even part has what it needs.
func TestFit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		widths [3]int
		want   [2]int
	}{
		{[3]int{5, 10, 5}, [2]int{5, 5}},
		{[3]int{5, 10, 100}, [2]int{5, 61}},
		{[3]int{100, 10, 100}, [2]int{33, 33}},
		{[3]int{35, 10, 31}, [2]int{35, 31}},
		{[3]int{36, 10, 31}, [2]int{35, 31}},
		{[3]int{100, 76, 100}, [2]int{1, 1}},
	} {
		if fit(c.widths[:], 80, 0, 2); c.widths[0] != c.want[0] || c.widths[2] != c.want[1] {
			t.Errorf("%v, want %v", c.widths, c.want)
		}
	}
}

// An owner is one field, whatever is known of it.
func TestOwner(t *testing.T) {
	t.Parallel()
	all := driver.Owner{Program: "interlock", User: "ann", Host: "web-1", PID: 42}
	named := func(name string) driver.Owner { o := all; o.Name = name; return o }
	for _, c := range []struct {
		owner driver.Owner
		want  string
	}{
		{all, "interlock/ann@web-1:42"},
		{named("web-1/interlock/42"), "interlock/ann@web-1:42"},
		{named("coupons"), "coupons/ann@web-1:42"},
		{named("coupons in Köln"), "coupons_in_Köln/ann@web-1:42"},
		{named("a\u202eb\n\xff"), `a\u202eb\n\xff/ann@web-1:42`},
		{driver.Owner{Name: "web-7"}, "web-7"},
		{driver.Owner{Name: "psql", User: "app", Host: "10.0.0.7"}, "psql/app@10.0.0.7"},
		{driver.Owner{User: "app", Host: "10.0.0.7"}, "app@10.0.0.7"},
		{driver.Owner{Host: "web-1", Program: "shop", PID: 3}, "shop/web-1:3"},
		{driver.Owner{User: "app"}, "app"},
		{driver.Owner{}, "unknown"},
	} {
		if got := owner(c.owner); got != c.want {
			t.Errorf("%+v: %q, want %q", c.owner, got, c.want)
		}
	}
	for _, c := range []struct {
		holder          driver.Holder
		field, sentence string
	}{
		{driver.Holder{Owner: all, Note: "a report"}, "interlock/ann@web-1:42", "interlock/ann@web-1:42 (a report)"},
		{driver.Holder{Foreign: true}, "foreign", "another program"},
		{driver.Holder{Foreign: true, Note: "pod 1"}, "foreign:pod_1", "another program (pod 1)"},
		{driver.Holder{Foreign: true, Owner: driver.Owner{Name: "psql", User: "app"}}, "foreign:psql/app", "another program, psql/app"},
	} {
		if got := field(c.holder); got != c.field {
			t.Errorf("%+v: field %q, want %q", c.holder, got, c.field)
		}
		if got := by(c.holder); got != c.sentence {
			t.Errorf("%+v: %q, want %q", c.holder, got, c.sentence)
		}
	}
}

// A time is in six characters, for as long as a machine lives, and never more than there is.
func TestShort(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for d, want := range map[time.Duration]string{
		-time.Second: "0ms", 0: "0ms", 999 * time.Millisecond: "999ms", time.Second: "1.0s", 9999 * time.Millisecond: "9.9s", 59999 * time.Millisecond: "59s",
		time.Minute: "1m0s", time.Hour - 1: "59m59s", time.Hour: "1h0m", day - 1: "23h59m", day: "1d0h", 100*day - 1: "99d23h", 100 * day: "100d", 99_999 * day: "99999d",
	} {
		if got := short(d); got != want || len(got) > 6 {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

// The log of a line has its header once. Each change is a row for whom it is about; who has left is
// told, and when nobody is there.
func TestChanges(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	c := changes{t: terminal{out: &out}, output: "narrow"}
	now := time.Date(2026, 11, 26, 9, 30, 0, 0, time.Local)
	claim := func(id string, held bool, fence uint64) driver.Holder {
		return driver.Holder{
			PublicID: id, Owner: driver.Owner{Name: id}, Kind: driver.Mutex, Held: held, Fence: fence, Since: now.Add(-time.Minute), Until: now.Add(15 * time.Second),
		}
	}
	for i, claims := range [][]driver.Holder{
		{},
		{claim("ann", true, 64)},
		{claim("ann", true, 64)}, // as after a renewal
		{claim("ann", true, 64), claim("bob", false, 0), claim("eve", false, 0)},
		{claim("bob", true, 128), claim("eve", false, 0)},
		{},
		{},
	} {
		if err := c.print(driver.Line{Name: "job", Claims: claims}, now.Add(time.Duration(i)*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	var want strings.Builder
	for _, row := range []string{
		"TIME          STATE   OWNER                     AGE     TRUST   TOKEN",
		"09:30:00.000  free    -                         -       -       -",
		"09:30:01.000  holds   ann                       1m1s    14s     64",
		"09:30:03.000  waits   bob                       1m3s    12s     -",
		"09:30:03.000  waits   eve                       1m3s    12s     -",
		"09:30:04.000  gone    ann                       1m4s    -       64",
		"09:30:04.000  holds   bob                       1m4s    11s     128",
		"09:30:05.000  gone    bob                       1m5s    -       128",
		"09:30:05.000  gone    eve                       1m5s    -       -",
		"09:30:05.000  free    -                         -       -       -",
	} {
		fmt.Fprintln(&want, row)
	}
	if out.String() != want.String() {
		t.Errorf("it prints\n%swant\n%s", &out, want.String())
	}

	// What is too wide is cut here, too, and all of it shown where that is asked for.
	for _, output := range []string{"narrow", "wide"} {
		out.Reset()
		c := changes{t: terminal{out: &out}, output: output}
		for _, l := range hostile() {
			if err := c.print(l, now); err != nil {
				t.Fatal(err)
			}
		}
		for _, row := range strings.Split(out.String(), "\n") {
			if n := width(row); n > 80 && output == "narrow" {
				t.Errorf("%d cells: %s", n, row)
			}
		}
		if strings.Contains(out.String(), "…") != (output == "narrow") || strings.Count(out.String(), "TIME") != 1 {
			t.Errorf("%s:\n%s", output, &out)
		}
	}
}

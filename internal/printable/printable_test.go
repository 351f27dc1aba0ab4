package printable_test

import (
	"strings"
	"testing"

	"github.com/interlock-go/interlock/internal/printable"
)

// What cannot be seen is shown.
func TestText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"coupons/42", "coupons/42"},
		{`a "job" of ours\`, `a "job" of ours\`},
		{"größer 注文 🔒", "größer 注文 🔒"},
		{"e\u0301", "e\u0301"},
		{"\u0301e", `\u0301e`},
		{"e" + strings.Repeat("\u0301", 6) + "e\u0301", "e" + strings.Repeat("\u0301", 4) + `\u0301\u0301` + "e\u0301"},
		{"ตั๋วที่นั่ง", "ตั๋วที่นั่ง"},
		{"a\nb\t\x1b[31m\x7f\u0085", `a\nb\t\x1b[31m\x7f\u0085`},
		{"\u202a\u202b\u202c\u202d\u202e", `\u202a\u202b\u202c\u202d\u202e`},
		{"\u2066\u2067\u2068\u2069\u200e\u200f\u061c", `\u2066\u2067\u2068\u2069\u200e\u200f\u061c`},
		{"\u200b\u200c\u200d\u2060\ufeff\u00ad", `\u200b\u200c\u200d\u2060\ufeff\u00ad`},
		{"\u3164\u115f\uffa0\u034f\ufe0f\U000e0100\u180b\u17b4\u2800", `\u3164\u115f\uffa0\u034f\ufe0f\U000e0100\u180b\u17b4\u2800`},
		{"\u00a0\u2003\u3000\u2028", `\u00a0\u2003\u3000\u2028`},
		{"\u0378\ue000\U000e0041\U0010ffff", `\u0378\ue000\U000e0041\U0010ffff`},
		{"\xff\xc3(\ufffd", "\\xff\\xc3(\ufffd"},
	} {
		got := printable.Text(c.text)
		if got != c.want {
			t.Errorf("%+q: %q, want %q", c.text, got, c.want)
		}
		if again := printable.Text(got); again != got {
			t.Errorf("%+q: once more it is %q", c.text, again)
		}
	}
}

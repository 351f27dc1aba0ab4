package lockname

import (
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	for name, want := range map[string]string{
		"": "want 1 to 1024", strings.Repeat("x", 1025): "want at most 1024", "\xff": "is not UTF-8", "a\nb": "control character U+000A", "a\u0085": "control character U+0085",
		"coupons/42": "", "日本 '\"\\": "", strings.Repeat("x", 1024): "",
	} {
		if err := Check(name); (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", name, err, want)
		}
	}
}

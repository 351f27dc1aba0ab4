package repo

import (
	"regexp"
	"strings"
	"testing"
)

// The picture that README shows is of the run whose words stand in docs/coupons.md: both are to be made anew together.
func TestPictureIsOfTheRunInWords(t *testing.T) {
	words, picture := read(t, root, "docs/coupons.md"), read(t, root, "docs/coupons.svg")
	acts := regexp.MustCompile(`(?m)^  \d  (.*?)  +\d+ +(\d+) +\d+ +\d+ +(\d+)  `).FindAllStringSubmatch(words, -1)
	if len(acts) != 4 {
		t.Fatalf("%d acts in words, want 4", len(acts))
	}
	var sold []string
	for _, a := range acts {
		sold = append(sold, a[2])
		says := a[2] + " sold"
		if a[3] != "0" {
			says += ", " + a[3] + " too many"
		}
		if !strings.Contains(picture, a[1]+"<") || !strings.Contains(picture, ">"+says) {
			t.Errorf("the picture does not say of %q: %s", a[1], says)
		}
	}
	readme := read(t, root, "README.md")
	alt := regexp.MustCompile(`!\[Coupons sold of 100: (\d+) .*? (\d+) .*? (\d+) .*? (\d+) .*\]\(docs/coupons\.svg\)`).FindStringSubmatch(readme)
	if alt == nil || strings.Join(alt[1:], " ") != strings.Join(sold, " ") {
		t.Errorf("README says of its picture %q, want the numbers %q", alt, sold)
	}
}

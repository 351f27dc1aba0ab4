package browsertest

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/interlock-go/interlock/internal/redistest"
	"github.com/interlock-go/interlock/internal/servertest"
	"github.com/interlock-go/interlock/web"
)

var picturesTo = flag.String("pictures", "", "the `folder` to which TestPictures writes its pictures")

// largest is how many bytes a picture may have: all are downloaded with the repository.
const largest = 150 << 10

// TestPictures makes the pictures of docs/web: what the handler shows of a store in which more
// happens than a test could wait for.
func TestPictures(t *testing.T) {
	t.Parallel()
	at := "redis://" + servertest.Redis(t).Addr()
	d := redistest.Open(t, at)
	t.Cleanup(func() { _ = d.Close(context.Background()) })
	for _, c := range []struct {
		name string
		look look
		line bool // it is of a name, not of all
	}{
		{"names-light", deskLight, false},
		{"names-dark", deskDark, false},
		{"name-light", deskLight, true},
		{"name-dark", deskDark, true},
		{"phone-light", phoneLight, false},
		{"phone-dark", phoneDark, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := &stage{Driver: d, began: time.Now(), next: make(chan struct{})}
			h, err := web.New([]web.Store{{Name: "main", URL: "redis://10.0.0.5:6379", Driver: s}}, &web.Options{
				Authorize: func(*http.Request) (web.Principal, error) {
					return web.Principal{Name: "ana", Read: []string{""}, Break: []string{""}}, nil
				},
				Logger: slog.New(slog.DiscardHandler),
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = h.Close() })
			server := httptest.NewServer(h)
			t.Cleanup(server.Close)
			p := open(t, server.URL, c.look)
			if c.line {
				p.visit("/line?name="+played, 200)
				for _, events := range []string{"Nothing yet", "The last 1 events", "The last 4 events", "The last 5 events"} {
					p.sees(events)
					if !strings.Contains(events, "5") {
						s.next <- struct{}{}
					}
				}
				p.sees("2 wait", "Break…")
			} else {
				p.visit("/", 200)
				p.sees("9 names, 9 held, 11 claims wait")
			}
			var shot []byte
			p.run(chromedp.CaptureScreenshot(&shot))
			small := fewColours(t, shot)
			if len(small) > largest {
				t.Errorf("it has %d bytes, want %d at most", len(small), largest)
			}
			if *picturesTo != "" {
				if err := os.WriteFile(filepath.Join(*picturesTo, c.name+".png"), small, 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// The pictures that stand in the documentation are small, and each is shown by a page.
func TestPicturesAreShown(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/web.md")
	if err != nil {
		t.Fatal(err)
	}
	all, err := filepath.Glob("../../docs/web/*")
	if err != nil || len(all) < 6 {
		t.Fatalf("%d pictures, %v: want 6 at least", len(all), err)
	}
	for _, name := range all {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > largest {
			t.Errorf("%s has %d bytes, want %d at most", name, info.Size(), largest)
		}
		if !strings.Contains(string(page), "web/"+filepath.Base(name)) {
			t.Errorf("docs/web.md does not show %s", name)
		}
	}
}

// fewColours writes a picture with a palette of its most frequent colours, in a quarter of the
// bytes: what is on a page are letters on plain ground, and shades of a letter's edge that are near
// to each other look the same.
func fewColours(t *testing.T, shot []byte) []byte {
	t.Helper()
	from, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		t.Fatal(err)
	}
	b := from.Bounds()
	whole := image.NewNRGBA(b)
	draw.Draw(whole, b, from, b.Min, draw.Src)
	pixels := func(do func(at int, c color.NRGBA)) {
		for i := 0; i+3 < len(whole.Pix); i += 4 {
			do(i/4, color.NRGBA{whole.Pix[i], whole.Pix[i+1], whole.Pix[i+2], whole.Pix[i+3]})
		}
	}
	count := map[color.NRGBA]int{}
	pixels(func(_ int, c color.NRGBA) { count[c]++ })
	if len(count) < 8 {
		t.Fatalf("the picture has %d colours: nothing is on it", len(count))
	}
	colours := slices.SortedFunc(maps.Keys(count), func(a, b color.NRGBA) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a.R, b.R), cmp.Compare(a.G, b.G), cmp.Compare(a.B, b.B))
	})
	var palette color.Palette
	for _, c := range colours[:min(len(colours), 256)] {
		palette = append(palette, c)
	}
	index := map[color.NRGBA]uint8{}
	for _, c := range colours {
		index[c] = uint8(palette.Index(c))
	}
	to := image.NewPaletted(b, palette)
	pixels(func(at int, c color.NRGBA) { to.Pix[at] = index[c] })
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, to); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

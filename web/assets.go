package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"path"
	"strings"
)

//go:embed static
var files embed.FS

// asset is a file that pages load. The hash in its path makes it another file when it changes, so that browsers may keep it.
type asset struct {
	content   []byte
	mediaType string
}

// assets are they by path; icon, styles and script are the paths as pages have them.
var (
	assets = map[string]asset{}
	icon   = load("static/icon.svg", "image/svg+xml")
	styles = load("static/page.css", "text/css; charset=utf-8")
	script = load("static/page.js", "text/javascript; charset=utf-8")
)

func load(name, mediaType string) (at string) {
	content, err := files.ReadFile(name)
	if err != nil {
		panic("web: " + err.Error()) // it is compiled in
	}
	sum := sha256.Sum256(content)
	ext := path.Ext(name)
	at = strings.TrimSuffix(name, ext) + "." + hex.EncodeToString(sum[:6]) + ext
	assets["/"+at] = asset{content, mediaType}
	return at
}

func (a asset) serve(_ *Handler, w http.ResponseWriter, _ *http.Request, _ Principal) error {
	w.Header().Set("Content-Type", a.mediaType)
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	_, _ = w.Write(a.content) // whoever asked may have gone
	return nil
}

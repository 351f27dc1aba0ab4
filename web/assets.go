package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html/template"
	"net/http"
	"path"
	"strings"
	"sync"

	"github.com/interlock-go/interlock/internal/icon"
)

//go:embed static templates
var files embed.FS

//go:embed openapi.json
var openAPIFile []byte

// bundle is the templates of pages, and the files that they load.
type bundle struct {
	templates            *template.Template
	assets               map[string]asset // by path
	icon, styles, script string           // their paths, as pages have them
}

// made returns the bundle. It is made with the first handler, so that a program without one starts
// faster.
var made = sync.OnceValue(func() *bundle {
	b := &bundle{templates: template.Must(template.New("").ParseFS(files, "templates/*.html")), assets: map[string]asset{}}
	b.icon = b.add("static/icon.svg", "image/svg+xml", icon.SVG)
	b.styles = b.load("static/page.css", "text/css; charset=utf-8")
	b.script = b.load("static/page.js", "text/javascript; charset=utf-8")
	return b
})

// asset is a file that pages load. Its path has a hash of its content, so that browsers may keep
// it.
type asset struct {
	content   []byte
	mediaType string
}

// load adds a file that is compiled in.
func (b *bundle) load(name, mediaType string) (at string) {
	content, err := files.ReadFile(name)
	if err != nil {
		panic("web: " + err.Error()) // it is compiled in
	}
	return b.add(name, mediaType, content)
}

// add adds a file, and returns its path as pages have it.
func (b *bundle) add(name, mediaType string, content []byte) (at string) {
	sum := sha256.Sum256(content)
	ext := path.Ext(name)
	at = strings.TrimSuffix(name, ext) + "." + hex.EncodeToString(sum[:6]) + ext
	b.assets["/"+at] = asset{content, mediaType}
	return at
}

// serve answers by the asset.
func (a asset) serve(w http.ResponseWriter) {
	w.Header().Set("Content-Type", a.mediaType)
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	_, _ = w.Write(a.content) // the client may have gone
}

// serveOpenAPI answers GET /v1/openapi.json.
func serveOpenAPI(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(openAPIFile) // the client may have gone
}

package stage

import (
	"bytes"
	"fmt"
	"html"
)

// sheet is a drawing in SVG, on a paper of its own that is light or dark as the reader's system is.
type sheet struct{ bytes.Buffer }

// style has a class for each thing that is drawn.
const style = `
.paper { fill: #ffffff; stroke: #d0d7de }
text { fill: #1f2328 }
.soft { fill: #59636e }
.head { font-weight: 600 }
.good { fill: #2f81f7 }
.bad { fill: #e5534b }
.wrong { fill: #cf222e }
.lane { fill: #8b949e; fill-opacity: .16 }
.stopped { fill: url(#stopped); stroke: #8b949e }
.hatch { stroke: #8b949e; stroke-width: 3 }
.line { stroke: #59636e; stroke-width: 1.5; fill: none }
.dash { stroke-dasharray: 4 3 }
.late { stroke: #cf222e; stroke-width: 3; fill: none }
.refused { stroke: #2da44e; stroke-width: 3; fill: none }
@media (prefers-color-scheme: dark) {
.paper { fill: #0d1117; stroke: #3d444d }
text { fill: #f0f6fc }
.soft { fill: #9198a1 }
.wrong { fill: #ff7b72 }
.late { stroke: #ff7b72 }
.line { stroke: #9198a1 }
}
`

// finish returns the whole document.
func (s *sheet) finish(title string, width, height int) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" `+
		`font-family="system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif" font-size="14">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, "<title>%s</title>\n<style>%s</style>\n", html.EscapeString(title), style)
	b.WriteString(`<defs><pattern id="stopped" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">` +
		`<path class="hatch" d="M0 0V7"/></pattern></defs>` + "\n")
	fmt.Fprintf(&b, `<rect class="paper" x="0.5" y="0.5" width="%d" height="%d" rx="8"/>`+"\n", width-1, height-1)
	b.Write(s.Bytes())
	b.WriteString("</svg>\n")
	return b.Bytes()
}

func (s *sheet) rect(class string, x, y, width, height float64) {
	fmt.Fprintf(s, `<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`+"\n", class, x, y, width, height)
}

// path draws along d, which is SVG's own language.
func (s *sheet) path(class, d string, args ...any) {
	fmt.Fprintf(s, `<path class="%s" d="%s"/>`+"\n", class, fmt.Sprintf(d, args...))
}

// text writes at x, y, which is the text's start, middle or end.
func (s *sheet) text(class string, size int, anchor string, x, y float64, text string) {
	fmt.Fprintf(s, `<text class="%s" font-size="%d" text-anchor="%s" x="%.1f" y="%.1f">%s</text>`+"\n",
		class, size, anchor, x, y, html.EscapeString(text))
}

// ring and cross are what becomes of a late write.
func (s *sheet) ring(x, y float64) {
	fmt.Fprintf(s, `<circle class="late" cx="%.1f" cy="%.1f" r="6"/>`+"\n", x, y)
}

func (s *sheet) cross(x, y float64) { s.path("refused", "M%.1f %.1fm-6 -6l12 12m0 -12l-12 12", x, y) }

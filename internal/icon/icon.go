// Package icon has the picture by which browsers show the pages of Interlock.
package icon

import _ "embed"

// SVG is the picture.
//
//go:embed icon.svg
var SVG []byte

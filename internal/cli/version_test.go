package cli

import (
	"runtime/debug"
	"testing"
)

// The version is that of Interlock, also in a program of others that needs it.
func TestModuleVersion(t *testing.T) {
	interlock := debug.Module{Path: modulePath, Version: "v1.2.3"}
	other := debug.Module{Path: "example.org/shop", Version: "v0.9.0"}
	for _, c := range []struct {
		name string
		info debug.BuildInfo
		want string
	}{
		{"its own program", debug.BuildInfo{Main: interlock, Deps: []*debug.Module{&other}}, "v1.2.3"},
		{"somebody else's program", debug.BuildInfo{Main: other, Deps: []*debug.Module{&interlock}}, "v1.2.3"},
		{"no modules", debug.BuildInfo{}, ""},
	} {
		if got := moduleVersion(&c.info); got != c.want {
			t.Errorf("%s: version %q, want %q", c.name, got, c.want)
		}
	}
}

package broken

import (
	"path"
	"strings"
)

// naming are the faults about names: law 9.
var naming = []Driver{
	{
		Name: "FoldsCase", Law: "Law09_Names", Says: "mixed up with",
		Fault: "Names are compared as the store's collation does, without case.",
		new:   func() *fault { return &fault{name: strings.ToLower} },
	},
	{
		Name: "CleansPaths", Law: "Law09_Names", Says: "mixed up with",
		Fault: "Names become paths, so that a/../b is b.",
		new:   func() *fault { return &fault{name: path.Clean} },
	},
	{
		Name: "TrimsSpace", Law: "Law09_Names", Says: "mixed up with",
		Fault: "A blank at the end does not count, as in SQL.",
		new: func() *fault {
			return &fault{name: func(name string) string { return strings.TrimRight(name, " ") }}
		},
	},
	{
		Name: "CutsAt255", Law: "Law09_Names", Says: "mixed up with",
		Fault: "A column or a file name holds 255 bytes.",
		new: func() *fault {
			return &fault{name: func(name string) string { return name[:min(len(name), 255)] }}
		},
	},
	{
		Name: "HashTags", Law: "Law09_Names", Says: "mixed up with",
		Fault: "Only what stands in braces is kept, as the slot of a cluster does.",
		new: func() *fault {
			return &fault{name: func(name string) string {
				if _, rest, ok := strings.Cut(name, "{"); ok {
					if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
						return "{" + tag + "}"
					}
				}
				return name
			}}
		},
	},
}

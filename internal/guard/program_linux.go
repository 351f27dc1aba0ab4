package guard

// ownProgram returns a path that executes the program of this process, even when its file was
// replaced or removed.
func ownProgram() (string, error) { return "/proc/self/exe", nil }

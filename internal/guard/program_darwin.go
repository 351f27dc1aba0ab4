package guard

import "os"

// ownProgram returns the path of this process's program.
func ownProgram() (string, error) { return os.Executable() }

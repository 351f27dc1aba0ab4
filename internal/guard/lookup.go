//go:build linux || darwin

package guard

import (
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// lookup finds the program name as a shell does: a name with a slash is a path, any other is looked
// for in the directories of path, where an empty one is the current directory. A file that may not
// be executed is passed over, and reported if no better one comes.
func lookup(name, dir, path string) (string, error) {
	if name == "" {
		return "", &StartError{Name: `""`, Err: syscall.ENOENT}
	}
	if strings.Contains(name, "/") {
		if err := executable(name, dir); err != nil {
			return "", &StartError{Name: name, Err: err}
		}
		return name, nil
	}
	result := error(syscall.ENOENT)
	if path == "" {
		return "", &StartError{Name: name, Err: result}
	}
	for _, d := range strings.Split(path, ":") {
		if d == "" {
			d = "."
		}
		file := d + "/" + name
		err := executable(file, dir)
		if err == nil {
			return file, nil
		}
		if !os.IsNotExist(err) {
			result = err
		}
	}
	return "", &StartError{Name: name, Err: result}
}

// executable says why file, relative to dir, cannot be executed by this user.
func executable(file, dir string) error {
	if dir != "" && !strings.HasPrefix(file, "/") {
		file = dir + "/" + file
	}
	var st unix.Stat_t
	if err := unix.Stat(file, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return syscall.EISDIR
	}
	if err := unix.Faccessat(unix.AT_FDCWD, file, unix.X_OK, unix.AT_EACCESS); err != nil {
		return err
	}
	return nil
}

// pathOf returns the value of PATH in env, and where there is none what execvp takes.
func pathOf(env []string) string {
	path := "/bin:/usr/bin"
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, "PATH="); ok {
			path = v
		}
	}
	return path
}

package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
)

// Account is a user of the system. A nil *Account is the user that runs this process.
type Account struct{ uid, gid int }

// Unprivileged returns the account for a server that refuses to run as root: the user that its
// package brings. It is nil where this process does not run as root.
func Unprivileged() (*Account, error) {
	if os.Geteuid() != 0 {
		return nil, nil //nolint:nilnil // a nil *Account is the user of this process
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.Atoi(u.Uid)
		if err != nil {
			continue
		}
		gid, err := strconv.Atoi(u.Gid)
		if err == nil {
			return &Account{uid, gid}, nil
		}
	}
	return nil, errors.New("servertest: databases refuse to run as root, and there is no user postgres or nobody")
}

// Own gives a file to the account.
func (a *Account) Own(path string) error {
	if a == nil {
		return nil
	}
	return os.Chown(path, a.uid, a.gid)
}

// Find returns the path of a program that the Debian package brings. Debian keeps the programs of
// PostgreSQL out of the search path, and servers in folders that only root searches.
func Find(name, debian string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil {
		return path, nil
	}
	for _, dir := range []string{"/usr/lib/postgresql/*/bin/", "/usr/sbin/"} {
		if all, _ := filepath.Glob(dir + name); len(all) > 0 {
			return all[len(all)-1], nil
		}
	}
	return "", fmt.Errorf("servertest: %s is needed to run this: install it (on Debian: apt-get install %s): %w", name, debian, err)
}

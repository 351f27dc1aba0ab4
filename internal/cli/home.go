package cli

import (
	"os/exec"
	"os/user"
	"strconv"
	"strings"
)

// home returns the home folder in the password entry of a user. In a program without cgo, as
// interlock is released, package user knows /etc/passwd alone; getent knows users of LDAP, SSSD and
// others as the C library does. Which store is somebody's must not depend on how the program was
// built.
func home(uid int) (string, error) {
	id := strconv.Itoa(uid)
	u, err := user.LookupId(id)
	if err == nil {
		return u.HomeDir, nil
	}
	entry, getentErr := exec.Command("getent", "passwd", id).Output()
	fields := strings.Split(strings.TrimSuffix(string(entry), "\n"), ":")
	if getentErr != nil || len(fields) != 7 || fields[2] != id {
		return "", err
	}
	return fields[5], nil
}

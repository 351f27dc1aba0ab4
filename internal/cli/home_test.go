package cli

import (
	"os"
	"path/filepath"
	"testing"
)

// A user whom /etc/passwd does not know, as one of a directory service, has the home that getent
// says; whom nobody knows has none.
func TestHome(t *testing.T) {
	const nobody = 1_234_567_890 // is in no /etc/passwd
	programs := t.TempDir()
	t.Setenv("PATH", programs)
	if dir, err := home(nobody); err == nil {
		t.Errorf("a user whom nobody knows has the home %s", dir)
	}
	for entry, want := range map[string]string{
		"ann:x:1234567890:100:Ann,,,:/srv/home/ann:/bin/sh": "/srv/home/ann",
		"bob:x:1000:100::/home/bob:/bin/sh":                 "", // somebody else
		"":                                                  "",
	} {
		script := "#!/bin/sh\n[ \"$*\" = 'passwd 1234567890' ] && echo '" + entry + "'\n"
		if err := os.WriteFile(filepath.Join(programs, "getent"), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
		if dir, err := home(nobody); dir != want || (err == nil) != (want != "") {
			t.Errorf("entry %q: home %q, %v; want %q", entry, dir, err, want)
		}
	}
}

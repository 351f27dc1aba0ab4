//go:build linux

package cli_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/internal/cli"
)

// again returns what a message says twice between two semicolons: an address, a quoted name, a
// store, a label that ends with a colon, or three words in a row.
func again(message string) string {
	for part := range strings.SplitSeq(message, "; ") {
		seen := map[string]bool{}
		twice := func(what string) bool {
			before := seen[what]
			seen[what] = true
			return before
		}
		for _, kind := range []string{`[0-9]+\.[0-9.]+:[0-9]+`, `"[^"]+"`, `[a-z+]+://[^ ,]+`, `file:/[^ ,]+`} {
			for _, thing := range regexp.MustCompile(kind).FindAllString(part, -1) {
				if twice(thing) {
					return thing
				}
			}
		}
		words := strings.Fields(part)
		for i, word := range words {
			if strings.HasSuffix(word, ":") && twice(word) {
				return word
			}
			if i > 0 && strings.Trim(words[i-1], ":,") == strings.Trim(word, ":,") {
				return word + " " + word
			}
			if i+3 <= len(words) {
				if three := strings.Join(words[i:i+3], " "); twice(three) {
					return three
				}
			}
		}
	}
	return ""
}

func TestAgain(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]string{
		`"job" is held by interlock/ann@web-1:42 since 2026-11-26 09:30:00, for 3.0s, in file:/tmp/store`: "",
		`redislock: redisconn: connect to 127.0.0.1:1: connect: connection refused`:                       "",
		`held by ann: held by bob`:                                        "",
		`redis: redis: nil`:                                               "redis:",
		`cannot lock "job": lock "job" failed`:                            `"job"`,
		`connect to 127.0.0.1:1: dial tcp 127.0.0.1:1: refused`:           "127.0.0.1:1",
		`the store cannot be used: the store cannot be reached`:           "the store cannot",
		`lost the lock: lease lost lost`:                                  "lost lost",
		`in file:/tmp/store, and the folder file:/tmp/store is not there`: "file:/tmp/store",
	} {
		if got := again(message); got != want {
			t.Errorf("%s: %q, want %q", message, got, want)
		}
	}
}

// Whatever goes wrong, the command says each thing once.
func TestMessagesSayThingsOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"photos/cat.jpg": "meow", "plain.txt": "text", "empty": ""} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	check := func(t *testing.T, status int, said string, args []string) {
		t.Helper()
		if status == 0 || said == "" {
			t.Errorf("interlock %q ends with %d and says %q", args, status, said)
		}
		for line := range strings.Lines(said) {
			line = strings.TrimPrefix(strings.TrimSpace(line), "interlock: ")
			if got := again(line); got != "" && !strings.HasPrefix(line, "Try: ") {
				t.Errorf("interlock %q says %q twice: %s", args, got, line)
			}
		}
	}
	says := func(t *testing.T, args ...string) {
		t.Helper()
		status, said := cli.Say(args...)
		check(t, status, said, args)
	}
	runs := func(t *testing.T, store string, args ...string) {
		t.Helper()
		c := exec.Command("interlock", append([]string{"run", "--store", store}, args...)...)
		c.Dir = dir
		out, err := c.CombinedOutput()
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		check(t, c.ProcessState.ExitCode(), string(out), args)
	}

	own := "file:" + filepath.Join(dir, "store")
	t.Run("mistakes", func(t *testing.T) {
		for _, args := range [][]string{
			{"run"},
			{"run", "job"},
			{"run", "job", "--"},
			{"run", "--", "true"},
			{"run", "job", "other", "--", "true"},
			{"run", "--no-such-flag", "job", "--", "true"},
			{"run", "--ttl", "30", "job", "--", "true"},
			{"run", "-w", "ten", "job", "--", "true"},
			{"run", "--try", "--wait", "1s", "job", "--", "true"},
			{"run", "--permits", "2", "--shared", "job", "--", "true"},
			{"run", "--exit-held", "300", "job", "--", "true"},
			{"run", "job", "head", "-n", "5"},
			{"elect"},
			{"elect", "nobody", "--store", own},
			{"break", "--store", own, "job"},
			{"break", "--store", own, "--yes", "job"},
			{"break", "--store", own, "job", "x", "1"},
			{"break", "--store", own, "job", "x", "y"},
			{"show"},
			{"watch"},
			{"ls", "-o", "yaml"},
			{"nosuch"},
			{"masters", "--store", own},
			{"migrate", "--store", own},
			{"prune", "--store", "mem:"},
			{"completion", "tcsh"},
			{"demo"},
			{"torture", "--for", "1s"},
			{"ls", "--store", ""},
			{"ls", "--store-file", ""},
			{"ls", "--store-file", dir + "/empty"},
			{"ls", "--store-file", dir + "/nosuch"},
			{"ls", "--store", own, "--store-file", "empty"},
			{"ls", "--store", "nosuch:x"},
			{"ls", "--store", "x"},
			{"ls", "--store", "mem:"},
			{"ls", "--store", own + "?colour=red"},
			{"ls", "--store", own + "?fence_base=x"},
			{"ls", "--store", "file:" + dir + "/photos"},
			{"ls", "--store", "file:" + dir + "/photos/cat.jpg"},
			{"ls", "--store", "file:" + dir + "/no/such"},
			{"ls", "--store", "file:/proc/nosuch"},
		} {
			says(t, args...)
		}
	})
	for _, args := range [][]string{
		{"a\nb", "--", "true"},
		{"--ttl", "1ms", "job", "--", "true"},
		{"--grace", "9s", "job", "--", "true"},
		{"job", "--", "no-such-program"},
		{"job", "--", "interlock", "run", "--store", own, "--try", "job", "--", "true"},
		{"job", "--", "interlock", "run", "--store", own, "job", "--", "true"},
		{"--ttl", "1s", "--max-hold", "300ms", "job2", "--", "sleep", "1000"},
	} {
		t.Run("run "+strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			runs(t, own, args...)
		})
	}
	for _, store := range []string{"file:" + dir + "/photos", "file:" + dir + "/photos/cat.jpg", "file:" + dir + "/no/such"} {
		t.Run("run "+filepath.Base(store), func(t *testing.T) {
			t.Parallel()
			runs(t, store, "job", "--", "true")
		})
	}

	// Where nobody listens.
	dead := func(n int) string { return fmt.Sprintf("127.0.0.1:%d", n) }
	for _, store := range []string{
		"redis://" + dead(1), "redis+sentinel://" + dead(1) + "," + dead(2) + "/mymaster", "redis+cluster://" + dead(1) + "," + dead(2),
		"redlock://" + dead(1) + "," + dead(2) + "," + dead(3), "redisson://" + dead(1), "postgres://app@" + dead(1) + "/shop", "postgres://app@" + dead(1) + "/shop?technique=session",
		"mysql://app@" + dead(1) + "/shop", "mysql://app@" + dead(1) + "/shop?technique=session", "shedlock+postgres://app@" + dead(1) + "/shop", "shedlock+mysql://app@" + dead(1) + "/shop",
		"etcd://" + dead(1), "memcached://" + dead(1), "zk://" + dead(1) + "," + dead(2) + "/locks",
	} {
		t.Run(strings.SplitN(store, ":", 2)[0], func(t *testing.T) {
			t.Parallel()
			runs(t, store, "--try", "job", "--", "true")
			says(t, "ls", "--store", store)
			says(t, "ls", "--store", strings.Replace(store+"?colour=red", "session?", "session&", 1))
		})
	}
}

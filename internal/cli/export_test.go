package cli

import "bytes"

// Say runs the command in this process and returns its exit status and all that it says. What has a
// command run needs a process of its own.
func Say(args ...string) (status int, said string) {
	var out bytes.Buffer
	status, _ = run(args, terminal{out: &out, err: &out})
	return status, out.String()
}

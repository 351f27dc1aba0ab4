package wire

import (
	"fmt"
	"strings"
	"testing"
)

var frames = []string{
	"+OK\r\n", "-ERR no\r\n", ":42\r\n", "$5\r\na\r\nb\n\r\n", "$0\r\n\r\n", "$-1\r\n", "*-1\r\n", "*0\r\n", "_\r\n", "#t\r\n", ",1.5\r\n", "(123\r\n",
	"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", "*3\r\n*1\r\n+a\r\n*0\r\n$1\r\n*\r\n", "%1\r\n+a\r\n*2\r\n:1\r\n:2\r\n", "~1\r\n+x\r\n",
	">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$2\r\n\r\n\r\n", "=7\r\ntxt:abc\r\n", "!3\r\nERR\r\n", "|1\r\n+ttl\r\n:3600\r\n$1\r\nv\r\n", "PING\r\n", "\r\n",
}

// However the stream is cut into packets, the frames are found whole and in order, and with every
// other one taken the rest is unharmed.
func TestFramesAreFoundHoweverThePacketsAreCut(t *testing.T) {
	stream := strings.Join(frames, "")
	for size := 1; size <= len(stream); size++ {
		var f framer
		var seen []string
		var out strings.Builder
		for rest := stream; rest != ""; {
			n := min(size, len(rest))
			out.Write(f.filter([]byte(rest[:n]), func(frame []byte) bool {
				seen = append(seen, string(frame))
				return len(seen)%2 == 1
			}, true))
			rest = rest[n:]
		}
		if got, want := fmt.Sprintf("%q", seen), fmt.Sprintf("%q", frames); got != want {
			t.Fatalf("packets of %d bytes: frames\n%s\nwant\n%s", size, got, want)
		}
		var kept strings.Builder
		for i := 0; i < len(frames); i += 2 {
			kept.WriteString(frames[i])
		}
		if out.String() != kept.String() {
			t.Fatalf("packets of %d bytes: passed\n%q\nwant\n%q", size, out.String(), kept.String())
		}
	}
}

func FuzzNothingIsLostThroughTheFramer(f *testing.F) {
	for _, frame := range frames {
		f.Add([]byte(frame), uint8(3), true)
	}
	f.Fuzz(func(t *testing.T, stream []byte, size uint8, filtering bool) {
		var fr framer
		var out, taken []byte
		for i := 0; i < len(stream); {
			n := min(int(size)%7+1, len(stream)-i)
			out = append(out, fr.filter(stream[i:i+n], func(frame []byte) bool { taken = append(taken, frame...); return true }, filtering)...)
			i += n
			if got := string(out) + string(fr.held); got != string(stream[:i]) {
				t.Fatalf("of %q came %q", stream[:i], got)
			}
		}
		if !filtering && len(taken) > 0 {
			t.Errorf("asked about %q without a filter", taken)
		}
	})
}

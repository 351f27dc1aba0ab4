package cli_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	_ "github.com/interlock-go/interlock/command/serve" // as cmd/interlock
	"github.com/interlock-go/interlock/internal/guard/guardtest"
	"github.com/interlock-go/interlock/internal/servertest"
)

// served is a server that a test has started.
type served struct {
	*exec.Cmd
	at   string // its first address
	said *strings.Builder
}

// serve starts a server by a command, which prints its address first.
func serve(t *testing.T, c *exec.Cmd) *served {
	t.Helper()
	s := &served{Cmd: c, said: &strings.Builder{}}
	s.Stderr = s.said
	out, err := s.StdoutPipe()
	if err == nil {
		err = s.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if s.ProcessState == nil {
			_ = s.Process.Kill()
			_ = s.Wait()
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_ = s.Wait()
		t.Fatalf("it serves nothing: %v\n%s", err, s.said)
	}
	s.at = strings.TrimSpace(line)
	return s
}

// get returns the status and the body of a page.
func get(t *testing.T, u string, headers ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, u, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// The server shows what stands in the stores that it was told of, reads its tokens again by SIGHUP,
// and ends by SIGTERM with 0.
func TestServe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	redis := servertest.Redis(t)
	redis.MustDo(t, "CONFIG", "SET", "requirepass", "geheim")
	with := strings.Replace(redis.URL(), "redis://", "redis://:geheim@", 1)
	stores, tokens := filepath.Join(dir, "stores"), filepath.Join(dir, "tokens")
	for name, text := range map[string]string{
		stores: "# two\nfiles=file:" + filepath.Join(dir, "store") + "\n\norders=" + with + "\n",
		tokens: "token=0123456789abcdef name=ana read=*\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := serve(t, exec.Command("interlock", "serve", "--listen", "127.0.0.1:0", "--store-file", stores, "--token-file", tokens, "--json"))
	var first struct {
		URL string `json:"url"`
	}
	if err := json.Unmarshal([]byte(s.at), &first); err != nil || !regexp.MustCompile(`^http://127\.0\.0\.1:\d+/$`).MatchString(first.URL) {
		t.Fatalf("it prints %s: %v", s.at, err)
	}
	run := exec.Command("interlock", "run", "--store", "file:"+filepath.Join(dir, "store"), "nightly report", "--", "sleep", "1000")
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = run.Process.Signal(syscall.SIGTERM)
		_ = run.Wait()
	}()
	old, added := []string{"Authorization", "Bearer 0123456789abcdef"}, []string{"Authorization", "Bearer fedcba9876543210"}
	guardtest.Eventually(t, "the lock is shown", func() bool {
		status, text := get(t, first.URL+"?store=files", old...)
		return status == 200 && strings.Contains(text, "nightly report")
	})
	if status, text := get(t, first.URL+"readyz"); status != 200 || !strings.Contains(text, `"files":"up","orders":"up"`) {
		t.Errorf("ready: %d %s", status, text)
	}
	if status, text := get(t, first.URL+"metrics"); status != 401 || !strings.Contains(text, "Bearer TOKEN") {
		t.Errorf("without a token: %d %s", status, text)
	}
	if err := os.WriteFile(tokens, []byte("token=fedcba9876543210 name=ben read=*\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_ = s.Process.Signal(syscall.SIGHUP)
	guardtest.Eventually(t, "the new token is known", func() bool {
		status, _ := get(t, first.URL+"metrics", added...)
		return status == 200
	})
	if status, _ := get(t, first.URL+"metrics", old...); status != 401 {
		t.Errorf("the old token: %d", status)
	}
	_ = s.Process.Signal(syscall.SIGTERM)
	if err := s.Wait(); err != nil {
		t.Errorf("ended by %v", err)
	}
	for _, secret := range []string{"geheim", "0123456789abcdef", "fedcba9876543210"} {
		if strings.Contains(s.said.String(), secret) {
			t.Errorf("the log has a secret:\n%s", s.said)
		}
	}
	for line := range strings.Lines(s.said.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("with --json it says %s", line)
		}
	}
}

// What is wrong is told before anything is served.
func TestServeIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := "file:" + filepath.Join(dir, "store")
	for _, c := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"--store", file, "--listen", "0.0.0.0:0"}, 64, "want --token-file"},
		{[]string{"--store", file, "--listen", ""}, 64, "--listen is empty"},
		{[]string{"--store", file, "--listen", "localhost"}, 64, "want HOST:PORT"},
		{[]string{"--store", file, "--token-file", ""}, 64, "--token-file is empty"},
		{[]string{"--store", file, "--store", file}, 64, "two stores are called"},
		{[]string{"--store", "a=" + file, "--store=a=" + file}, 64, "two stores are called"},
		{[]string{"--store", "a b=" + file}, 64, "a b"},
		{[]string{"--store", "mem:x"}, 64, "memory of one process"},
		{[]string{"--store", file, "--store", "x=mem:"}, 64, "memory of one process"},
		{[]string{"--store", "a=nothing://x"}, 64, "unknown scheme"},
		{[]string{"--store", file, "--store-file", "x"}, 64, "give one"},
		{[]string{"--store-file", filepath.Join(dir, "none")}, 69, "cannot read"},
		{[]string{"--store", file, "--max-streams", "0"}, 64, "--max-streams 0"},
		{[]string{"--store", file, "--drain", "soon"}, 64, "want a time with its unit"},
		{[]string{"--store", file, "somewhere"}, 64, "unexpected argument"},
	} {
		endsWith(t, append([]string{"serve"}, c.args...), c.status, c.says)
	}
	if _, err := os.Stat(filepath.Join(dir, "store")); err == nil {
		t.Error("the folder of the store was made: want the command line refused before a store is opened")
	}
}

// Systemd listens, and the server has its socket.
func TestServeBySystemd(t *testing.T) {
	t.Parallel()
	port, err := servertest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	at := "127.0.0.1:" + strconv.Itoa(port)
	c := exec.Command("systemd-socket-activate", "-l", at, "-E", "INTERLOCK_STORE=file:"+filepath.Join(t.TempDir(), "store"), "-E", "PATH="+os.Getenv("PATH"), "interlock", "serve")
	var said strings.Builder
	c.Stderr, c.Stdout = &said, &said
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		if err := c.Wait(); err != nil {
			t.Errorf("ended by %v\n%s", err, &said)
		}
	}()
	guardtest.Eventually(t, "it answers", func() bool {
		status, text := get(t, "http://"+at+"/readyz")
		return status == 200 && strings.Contains(text, `"default":"up"`)
	})
}

// The image has the program alone, as a user who may do nothing, and the program starts by the
// words that the image has. No registry is asked here: that the base has what Go programs without
// cgo need (certificates, zones, /tmp) is its own promise.
func TestDockerfile(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "deploy", "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	_, image, _ := strings.Cut(string(text), "\nFROM gcr.io/distroless/static-")
	for _, want := range []string{":nonroot\n", "\nUSER 65532:65532\n", "\nCOPY --from=build /interlock /usr/bin/interlock\n", "\nENTRYPOINT [\"/usr/bin/interlock\"]\n"} {
		if !strings.Contains(image, want) {
			t.Errorf("the image has no %q", want)
		}
	}
	if strings.Contains(image, "\nRUN ") || !strings.Contains(string(text), "CGO_ENABLED=0 go build") {
		t.Error("a program runs in the image that has none, or the program needs a C library")
	}
	m := regexp.MustCompile(`(?m)^CMD (\[.*\])$`).FindStringSubmatch(image)
	var words []string
	if m == nil || json.Unmarshal([]byte(m[1]), &words) != nil || len(words) < 4 {
		t.Fatalf("the image says %q", m)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"store": "file:" + filepath.Join(dir, "locks") + "\n", "tokens": "token=0123456789abcdef name=ana read=*\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o440); err != nil {
			t.Fatal(err)
		}
	}
	for i := range words {
		words[i] = strings.NewReplacer("/etc/interlock", dir, "=:7070", "=:0", "=5s", "=0s").Replace(words[i])
	}
	s := serve(t, exec.Command("interlock", words...))
	if status, body := get(t, s.at+"readyz"); status != 200 {
		t.Errorf("ready: %d %s", status, body)
	}
	if status, body := get(t, s.at+"metrics"); status != 401 {
		t.Errorf("without a token: %d %s", status, body)
	}
	_ = s.Process.Signal(syscall.SIGTERM)
	if err := s.Wait(); err != nil {
		t.Errorf("ended by %v\n%s", err, s.said)
	}
}

// As the image has it, the program runs in a root that has nothing else, as its user.
func TestDockerfileIsEnough(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the program")
	}
	if os.Geteuid() != 0 {
		t.Log("not root: no other root can be had")
		return
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "deploy", "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	build := regexp.MustCompile(`(?m)^RUN (.* -o )/interlock( .*)$`).FindStringSubmatch(string(text))
	if build == nil {
		t.Fatal("the image is not built")
	}
	root := t.TempDir()
	c := exec.Command("bash", "-e", "-c", build[1]+filepath.Join(root, "interlock")+build[2])
	c.Dir = filepath.Join("..", "..")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	c = exec.Command("/interlock", "serve", "--listen", "127.0.0.1:0", "--store", servertest.Redis(t).URL())
	c.Path, c.Env, c.Dir = "/interlock", []string{}, "/"
	c.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
	s := serve(t, c)
	if status, body := get(t, s.at+"readyz"); status != 200 {
		t.Errorf("ready: %d %s\n%s", status, body, s.said)
	}
	_ = s.Process.Signal(syscall.SIGTERM)
	if err := s.Wait(); err != nil {
		t.Errorf("ended by %v\n%s", err, s.said)
	}
}

// What the page about the server has is run in its order, each server in place of the one before.
func TestPageServe(t *testing.T) {
	t.Parallel()
	redis := servertest.Redis(t)
	port, err := servertest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	at := "127.0.0.1:" + strconv.Itoa(port)
	dir := t.TempDir()
	here := strings.NewReplacer("127.0.0.1:7070", at, "localhost:6379", redis.Addr(), "/var/lib/interlock", filepath.Join(dir, "store"))
	script := strings.Builder{}
	script.WriteString(leavesNobody)
	for _, b := range page(t, "serve.md") {
		if b[1] != "sh" {
			continue
		}
		text := here.Replace(b[2])
		if !strings.HasPrefix(text, "interlock serve ") {
			script.WriteString(text)
			continue
		}
		script.WriteString("kill $(jobs -p) 2>/dev/null && wait || true\n" + strings.TrimSpace(text) + " >>served 2>>log &\n" +
			"until curl --silent http://" + at + "/readyz; do sleep 0.05; done\n")
	}
	c := exec.CommandContext(t.Context(), "bash", "-e", "-c", script.String())
	c.Dir = dir
	out, err := c.CombinedOutput()
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(dir, "log"))
		t.Fatalf("%v\n%s\n%s", err, out, log)
	}
	for _, want := range []string{`"stores":{"default":"up"}`, `"stores":{"jobs":"up","orders":"up"}`, `interlock_store_up{store="default"} 1`} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
	if urls, err := os.ReadFile(filepath.Join(dir, "served")); err != nil || string(urls) != strings.Repeat("http://"+at+"/\n", 3) {
		t.Errorf("they say %q, %v", urls, err)
	}
}

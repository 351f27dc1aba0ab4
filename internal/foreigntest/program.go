package foreigntest

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

//go:embed clients/redispy.py
var redisPyProgram []byte

//go:embed clients/nodelock.js
var nodeProgram []byte

//go:embed clients/redisson.py
var redissonProgram []byte

//go:embed clients/kazoolock.py
var kazooProgram []byte

//go:embed clients/CuratorLock.java
var curatorProgram []byte

// program returns the command that runs a client of the kind, to which servers, name and TTL are added.
func program(t testing.TB, kind Kind) (*exec.Cmd, error) {
	t.Helper()
	switch kind {
	case RedisPy:
		python, err := python()
		if err != nil {
			return nil, err
		}
		return script(t, python, "redispy.py", redisPyProgram)
	case RedissonLock, RedissonFenced, RedissonFair, RedissonSpin, RedissonRead, RedissonWrite, RedissonMulti:
		python, err := python()
		if err != nil {
			return nil, err
		}
		return script(t, python, "redisson.py", redissonProgram, strings.TrimPrefix(string(kind), "redisson-"))
	case Redlock4, Redlock5, SemaphoreMutex, SemaphoreRedlock:
		node, err := node()
		if err != nil {
			return nil, err
		}
		process, err := script(t, node.program, "nodelock.js", nodeProgram, string(kind))
		if err != nil {
			return nil, err
		}
		process.Env = append(os.Environ(), "NODE_PATH="+node.modules)
		return process, nil
	case CuratorMutex, CuratorRead, CuratorWrite, CuratorSemaphore, CuratorSemaphoreMutex:
		classes, err := CompileWithCurator("CuratorLock", curatorProgram)
		if err != nil {
			return nil, err
		}
		return exec.Command("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", classes, "CuratorLock", string(kind)), nil
	case KazooLock, KazooRead, KazooWrite:
		python, err := kazoo()
		if err != nil {
			return nil, err
		}
		return script(t, python, "kazoolock.py", kazooProgram, string(kind))
	case Redsync, Redislock, GoZooKeeper:
		peerlock, err := peerlock()
		if err != nil {
			return nil, err
		}
		return exec.Command(peerlock, string(kind)), nil
	}
	return nil, fmt.Errorf("foreigntest: there is no client %q", kind)
}

// script writes the text into a folder of the test and returns the command that has it interpreted.
func script(t testing.TB, interpreter, name string, text []byte, args ...string) (*exec.Cmd, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return nil, err
	}
	return exec.Command(interpreter, append([]string{path}, args...)...), nil
}

// python and kazoo are that of the system, whose packages Debian installs, or else the first on the path.
var (
	python = sync.OnceValues(func() (string, error) { return findPython("redis.lock", "redis", "/usr/bin/python3", "python3") })
	kazoo  = sync.OnceValues(func() (string, error) { return findPython("kazoo.client", "kazoo", "/usr/bin/python3", "python3") })
)

// findPython returns the first of the programs that is a Python with a module, which is in a package.
func findPython(module, pkg string, names ...string) (string, error) {
	var tried []string
	for _, name := range names {
		out, err := exec.Command(name, "-c", "import "+module).CombinedOutput()
		if err == nil {
			return name, nil
		}
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		tried = append(tried, fmt.Sprintf("%s: %v %s", name, err, lines[len(lines)-1]))
	}
	return "", fmt.Errorf("foreigntest: no Python has %s (%s): install the Debian package python3-%[1]s, or elsewhere pip install %[1]s",
		pkg, strings.Join(tried, "; "))
}

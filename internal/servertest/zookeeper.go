package servertest

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// StartZooKeeper starts one ZooKeeper and returns when it serves sessions. Arguments that begin
// with "-" are for Java, such as "-Dzookeeper.forceSync=yes"; the others are lines of its
// configuration, such as "maxClientCnxns=5". They win over the defaults.
//
// Its tick is 100 ms, so that a session may be as short as 200 ms, and a minute long. It does not
// call fsync unless told to: a process that is killed loses nothing by that, only a machine would.
func StartZooKeeper(ctx context.Context, o Options) (*Server, error) {
	return start(ctx, zookeeper("Using checkIntervalMs"), o) // which a lone server begins to do when it serves
}

// ZooKeeper starts one server for the test and closes it at the test's end. The arguments are those
// of StartZooKeeper.
func ZooKeeper(t TB, args ...string) *Server {
	t.Helper()
	return forTest(t, func(ctx context.Context) (*Server, error) { return StartZooKeeper(ctx, Options{Args: args}) })
}

// zookeeperJar is where Debian keeps it. It names what it needs but for a part of Netty, by which
// it speaks TLS, and where to log to.
const (
	zookeeperJar = "/usr/share/java/zookeeper.jar"
	zookeeperToo = ":/usr/share/java/netty-codec.jar:/usr/share/java/slf4j-simple.jar"
)

func zookeeper(ready string, group ...string) program {
	return program{
		command: "java", ready: ready, data: "version-2",
		args: func(s *Server) ([]string, error) {
			if _, err := os.Stat(zookeeperJar); err != nil {
				return nil, fmt.Errorf("servertest: ZooKeeper is needed to run this: install it (on Debian: apt-get install zookeeper): %w", err)
			}
			config := slices.Concat([]string{
				"dataDir=" + s.dir, "clientPortAddress=127.0.0.1", "clientPort=" + strconv.Itoa(s.port), "tickTime=100", "maxSessionTimeout=60000",
				"maxClientCnxns=0", "admin.enableServer=false", "initLimit=100", "syncLimit=50",
			}, group)
			java := []string{
				"-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", // half a second to start instead of a whole one
				"-Dzookeeper.forceSync=no", "-Dzookeeper.preAllocSize=64", "-Djava.net.preferIPv4Stack=true",
				// Else members that have missed each other's votes say them again after twice the
				// time each time, up to a minute.
				"-Dzookeeper.fastleader.maxNotificationInterval=1000",
			}
			for _, arg := range s.o.Args {
				if strings.HasPrefix(arg, "-") {
					java = append(java, arg)
				} else {
					config = append(config, arg)
				}
			}
			file := filepath.Join(s.dir, "zoo.cfg")
			if err := os.WriteFile(file, []byte(strings.Join(config, "\n")+"\n"), 0o600); err != nil {
				return nil, fmt.Errorf("servertest: a file for ZooKeeper: %w", err)
			}
			return append(java, "-cp", zookeeperJar+zookeeperToo, "org.apache.zookeeper.server.quorum.QuorumPeerMain", file), nil
		},
		url: func(s *Server) string { return "zk://" + s.Addr() },
	}
}

// Serves asks a ZooKeeper what it is: "standalone", "leader" or "follower". A member without a
// majority, and a server that is down or paused, is an error.
func (s *Server) Serves() (mode string, err error) {
	answer, err := s.fourLetters("srvr")
	if err != nil {
		return "", err
	}
	if _, mode, ok := strings.Cut(answer, "Mode: "); ok {
		mode, _, _ = strings.Cut(mode, "\n")
		return mode, nil
	}
	return "", fmt.Errorf("servertest: the server at %s does not serve: %s", s.Addr(), strings.TrimSpace(answer))
}

// fourLetters asks by the protocol for operators, where a connection is one question.
func (s *Server) fourLetters(word string) (string, error) {
	c, err := net.DialTimeout("tcp", s.Addr(), time.Second)
	if err != nil {
		return "", fmt.Errorf("servertest: %w", err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(c, word); err != nil {
		return "", fmt.Errorf("servertest: %w", err)
	}
	b, err := io.ReadAll(c)
	if err != nil {
		return "", fmt.Errorf("servertest: the server at %s does not answer %s: %w", s.Addr(), word, err)
	}
	return string(b), nil
}

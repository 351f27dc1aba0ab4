package redistest

import (
	"context"
	"strings"
	"time"

	"github.com/interlock-go/interlock/internal/servertest"
)

// RestartCluster restarts all nodes at once, and returns when every node says that the Cluster
// works, every replica has its copy, and all know the scripts.
func RestartCluster(ctx context.Context, c *servertest.Cluster, scripts []string) error {
	errs := make(chan error, len(c.Nodes))
	for _, node := range c.Nodes {
		go func() { errs <- node.Restart(ctx) }()
	}
	for range c.Nodes {
		if err := <-errs; err != nil {
			return err
		}
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !works(c) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return Teach(c, scripts)
}

func works(c *servertest.Cluster) bool {
	for _, node := range c.Nodes {
		info, err := node.Do("CLUSTER", "INFO")
		if err != nil || !strings.Contains(info, "cluster_state:ok") {
			return false
		}
		info, err = node.Do("INFO", "replication")
		if err != nil || !strings.Contains(info, "role:master") && !strings.Contains(info, "master_link_status:up") {
			return false
		}
	}
	return true
}

// Teach has every node know the scripts: the first use of each would cost a second call, and a law
// that counts calls cannot know which master a new name is at.
func Teach(c *servertest.Cluster, scripts []string) error {
	for _, script := range scripts {
		for _, node := range c.Nodes {
			if _, err := node.Do("SCRIPT", "LOAD", script); err != nil {
				return err
			}
		}
	}
	return nil
}

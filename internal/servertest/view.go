package servertest

import (
	"fmt"
	"strconv"
	"strings"
)

// node is a node of a Cluster as one of its nodes sees it.
type node struct {
	id       string
	port     int
	flags    string
	master   bool
	sound    bool   // neither failing nor unknown
	masterID string // of a replica
	epoch    int
	ranges   [][2]int
}

func (n node) owns(slot int) bool {
	for _, r := range n.ranges {
		if r[0] <= slot && slot <= r[1] {
			return true
		}
	}
	return false
}

// view returns how the server sees its Cluster.
func (s *Server) view() ([]node, error) {
	text, err := s.Do("CLUSTER", "NODES")
	if err != nil {
		return nil, err
	}
	var nodes []node
	for line := range strings.Lines(text) {
		n, err := parseNode(line)
		if err != nil {
			return nil, fmt.Errorf("servertest: %q is no line of CLUSTER NODES: %w", line, err)
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// parseNode reads a line of CLUSTER NODES:
//
//	id ip:port@bus[,host] flags master-id|- ping pong epoch link slot|first-last|[migration] …
func parseNode(line string) (n node, err error) {
	f := strings.Fields(line)
	if len(f) < 8 {
		return node{}, fmt.Errorf("%d fields", len(f))
	}
	n.id, n.flags, n.masterID = f[0], f[2], f[3]
	host, _, _ := strings.Cut(f[1], "@")
	if n.port, err = strconv.Atoi(host[strings.LastIndexByte(host, ':')+1:]); err != nil {
		return node{}, err
	}
	if n.epoch, err = strconv.Atoi(f[6]); err != nil {
		return node{}, err
	}
	flags := "," + n.flags + ","
	n.master = strings.Contains(flags, ",master,")
	n.sound = !strings.Contains(flags, ",fail") && !strings.Contains(flags, ",handshake,") && !strings.Contains(flags, ",noaddr,")
	for _, text := range f[8:] {
		if strings.HasPrefix(text, "[") { // a slot on its way
			continue
		}
		first, last, isRange := strings.Cut(text, "-")
		if !isRange {
			last = first
		}
		var r [2]int
		if r[0], err = strconv.Atoi(first); err == nil {
			r[1], err = strconv.Atoi(last)
		}
		if err != nil {
			return node{}, err
		}
		n.ranges = append(n.ranges, r)
	}
	return n, nil
}

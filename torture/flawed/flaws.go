package flawed

import "time"

// Flaw is one of the wrong locks.
type Flaw struct {
	Name  string // in its URL
	Title string
}

// Flaws are all there are.
func Flaws() []Flaw {
	var out []Flaw
	for _, k := range kinds {
		if k.Title != noFlaw {
			out = append(out, k.Flaw)
		}
	}
	return out
}

// options are those of a URL.
type options struct {
	addr   string        // of the one Redis
	skew   time.Duration // of this process's clock
	maxTTL time.Duration // of locks over several masters
}

// kind is one of the locks, without a flaw or with one.
type kind struct {
	Flaw
	make func(honest, options) lock
	over func(quorum) quorum // of a lock over several masters
}

const (
	noFlaw = "no flaw"
	pooler = "pooled" // no locks of Redis
	face   = "face-value"
	lapsed = "lapsed"      // in etcd, and
	lease  = "leased"      // the same without the flaw
	anew   = "unprotected" // in ZooKeeper, and
	sought = "protected"   // the same without the flaw
)

// kinds are the locks.
var kinds = []kind{
	{Flaw{"honest", noFlaw}, func(h honest, _ options) lock { return h }, nil},
	{Flaw{"forever", "SETNX without expiry"}, func(h honest, _ options) lock { return forever{h} }, nil},
	{Flaw{"two-steps", "SETNX, then EXPIRE as a second command"}, func(h honest, _ options) lock { return twoSteps{h} }, nil},
	{Flaw{"plain-delete", "plain DEL on release"}, func(h honest, _ options) lock { return plainDelete{h} }, nil},
	{Flaw{"one-value", "one value for all clients"}, func(h honest, _ options) lock { return oneValue{h} }, nil},
	{Flaw{"client-clocks", "GETSET with the clients' clocks"}, func(h honest, o options) lock { return clientClocks{h, o.skew} }, nil},
	{Flaw{"reply-time", "validity counted from the reply"}, func(h honest, _ options) lock { return replyTime{h} }, nil},
	{Flaw{"promoted", "a replica promoted before it had the key"}, func(h honest, _ options) lock { return h }, nil},
	{Flaw{"revive", "an extend that revives"}, func(h honest, _ options) lock { return revive{h} }, nil},
	{Flaw{"watchdog", "a goroutine for each lock, which nobody ends"}, func(h honest, _ options) lock { return watchdog{h} }, nil},
	{Flaw{"unclosed", "a connection for each lock, which nobody closes"}, func(h honest, o options) lock { return unclosed{h, o.addr} }, nil},
	{Flaw{"litter", "a key without expiry for each release"}, func(h honest, _ options) lock { return litter{h} }, nil},
	{Flaw{pooler, "advisory lock through a transaction pooler"}, nil, nil},
	{Flaw{face, "memcached's seconds at face value"}, nil, nil},
	{Flaw{lapsed, "a key in etcd exists, whoever's lease it has"}, nil, nil},
	{Flaw{lease, noFlaw}, nil, nil},
	{Flaw{anew, "a node in ZooKeeper made again when its answer is lost"}, nil, nil},
	{Flaw{sought, noFlaw}, nil, nil},
	{Flaw{"majority", noFlaw}, nil, func(q quorum) quorum { return q }},
	{Flaw{"quorum", "half of the masters suffice"}, nil, func(q quorum) quorum {
		q.need = func(masters, _ int) int { return masters / 2 }
		return q
	}},
	{Flaw{"token-max", "the largest counter is the token, and not written back"}, nil, func(q quorum) quorum {
		q.raise = false
		return q
	}},
	{Flaw{"rejoin", "a master that has lost its memory counts at once"}, nil, func(q quorum) quorum {
		q.voteless = true
		return q
	}},
	{Flaw{"minority", "what was won in vain is not given back"}, nil, func(q quorum) quorum {
		q.keep = true
		return q
	}},
	{Flaw{"counting", "permits counted on a plain majority"}, nil, func(q quorum) quorum {
		q.need = func(masters, _ int) int { return masters/2 + 1 }
		return q
	}},
}

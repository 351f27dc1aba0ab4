package membership

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/redisstore"
	"github.com/interlock-go/interlock/redisconn"
)

// Info is what one master says of itself.
type Info struct {
	Err     error // it did not answer
	Damaged error // it answered, and what it has on record was written by somebody else

	Run      string // the run_id: of this start of the server
	Role     string
	Upstream string // of a replica: the address of its master
	Cluster  bool   // it is a node of a Cluster
	Durable  bool   // it forgets nothing when it restarts, and has no replica that could take its place
	Loaded   bool   // it started from its log
	Logless  bool   // it keeps no log
	Evicts   string // by which policy it throws keys away when its memory is full; "" if by none
	Past     string // of which data set it was a replica before; "" if it was none

	Record Record
	Vote   string
	Used   bool          // the set on record is in use
	High   int64         // no counter of a token that it has drawn is larger
	Wait   time.Duration // from its answer until its wait is over, by its clock
	Took   time.Duration // from the first question to any master until its answer
}

// Record is what a master has on record. Its own ID and what it could forget are as of the last
// write.
type Record struct {
	Set
	ID      string
	Run     string
	Durable bool
	Past    string
	Until   int64 // when its wait is over, by its clock, in ms
}

// ask asks a master who it is, as a user who needs these commands. All masters are asked since a
// time.
func ask(ctx context.Context, conn redisconn.Conn, needs []string, since time.Time) Info {
	i := Info{}
	var info map[string]string
	i.Err = conn.EachMaster(ctx, func(do redisconn.DoFunc) (err error) {
		if info, err = redisstore.About(ctx, do); err == nil {
			err = redisstore.Knows(ctx, do, needs)
		}
		if err == nil {
			i.Durable, err = redisstore.Durable(ctx, do, info)
		}
		return err
	})
	if i.Err = redisconn.Unchanged(i.Err); i.Err != nil {
		return i
	}
	i.Durable = i.Durable && info["connected_slaves"] == "0"
	i.Loaded = redisstore.Loaded(info)
	i.Run, i.Role, i.Cluster = info["run_id"], info["role"], info["cluster_enabled"] == "1"
	i.Upstream = info["master_host"] + ":" + info["master_port"]
	i.Past = strings.Trim(info["master_replid2"], "0")
	i.Logless = info["aof_enabled"] == "0"
	if i.Evicts = info["maxmemory_policy"]; i.Evicts == "noeviction" {
		i.Evicts = ""
	}
	if i.Run == "" {
		i.Err = errors.New("the server does not tell its run_id")
		return i
	}
	look := Look()
	look.Behind = true
	v, err := redisconn.Runner{Conn: conn}.Run(ctx, look)
	if final(err) {
		i.Damaged = err
		return i
	}
	if err != nil || !i.parse(v) {
		i.Err = errors.Join(redisconn.Unchanged(err), errors.New("the server does not tell what set of masters it belongs to"))
	}
	i.Took = time.Since(since)
	return i
}

// parse reads what the script answers to a look.
func (i *Info) parse(v any) bool {
	f, _ := v.([]any)
	if len(f) != 12 {
		return false
	}
	number := func(at int) int64 { x, _ := f[at].(int64); return x }
	text := func(at int) string { x, _ := f[at].(string); return x }
	ms := func(at int) time.Duration { return time.Duration(number(at)) * time.Millisecond }
	i.Record = Record{
		Set: Set{Version: number(0), MaxTTL: ms(2)}, ID: text(3), Run: text(4), Until: number(5), Durable: text(9) == "1", Past: text(10),
	}
	if members := text(1); members != "" {
		i.Record.Members = strings.Split(members, ",")
	}
	i.Vote, i.Used, i.Wait = text(6), number(7) > 0, ms(5)-ms(8)
	i.High, _ = strconv.ParseInt(text(11), 10, 64)
	return true
}

// final reports whether a master refuses, and will however often it is asked.
func final(err error) bool {
	return errors.Is(err, driver.ErrRefused) && !errors.Is(err, driver.ErrNotSent)
}

//go:build linux || darwin

package torture

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/internal/servertest"
)

// entries is how many keys, rows or nodes the servers keep. Sessions whose time is over are none: in a PostgreSQL and a MariaDB such a
// row may stay for an hour until somebody sweeps it away. Nor are what package redissonlock notes beside a lock, which it forgets after an hour,
// and the lines of masters where all that wait are dead: a request that a link held back until its process had closed puts one there, for an hour.
func (s *servers) entries(ctx context.Context) (n int, err error) {
	switch {
	case s.postgres != nil:
		text, err := ask(ctx, s.postgres.primary, allRows)
		if err == nil {
			n, err = strconv.Atoi(text)
		}
		if err != nil || s.shedlock {
			return n, err
		}
		text, err = ask(ctx, s.postgres.primary, "select count(*) from interlock.session where until < interlock.us()")
		if err != nil {
			return 0, err
		}
		over, err := strconv.Atoi(text)
		return n - over, err
	case s.mariadb != nil:
		return mariaDBRows(ctx, s.mariadb, !s.shedlock)
	case s.etcd != nil:
		return etcdKeys(ctx, s.etcd.Members[0])
	case s.zookeeper != nil:
		return nodes(s.zookeeper.Members[0])
	case s.memcached != nil:
		return memcachedItems(s.memcached)
	}
	for _, node := range s.nodes() {
		text, err := node.Do("DBSIZE")
		if err != nil {
			return 0, err
		}
		keys, err := strconv.Atoi(text)
		if err != nil {
			return 0, err
		}
		n += keys
		if s.masters == nil {
			continue
		}
		if text, err = node.Do("EVAL", deadLines, "0"); err != nil {
			return 0, err
		}
		dead, err := strconv.Atoi(text)
		if err != nil {
			return 0, err
		}
		n -= dead
	}
	if s.redisson {
		text, err := s.redis.Do("EVAL", "return #redis.call('KEYS', ARGV[1])", "0", "il:{*}:redisson:*")
		if err != nil {
			return 0, err
		}
		notes, err := strconv.Atoi(text)
		return n - notes, err
	}
	return n, nil
}

// besideCounters tells what else than counters a few keys of each Redis are, and what is in them: one of them is what was not to stay.
func (s *servers) besideCounters() string {
	if s.postgres != nil || s.mariadb != nil || s.etcd != nil || s.zookeeper != nil || s.memcached != nil {
		return ""
	}
	var b strings.Builder
	for _, node := range s.nodes() {
		text, err := node.Do("EVAL", besideCounters, "0")
		if err != nil {
			text = err.Error()
		}
		if text != "" {
			fmt.Fprintf(&b, "; at %s %s", node.Addr(), text)
		}
	}
	return b.String()
}

const besideCounters = `
local read = {string = {'GET'}, list = {'LRANGE', '0', '-1'}, hash = {'HGETALL'}, zset = {'ZRANGE', '0', '-1'}, set = {'SMEMBERS'}}
local found = {}
for _, k in ipairs(redis.call('KEYS', '*')) do
  if not string.find(k, '^il:{.*}:q?fence:') and #found < 5 then
    local kind = redis.call('TYPE', k).ok
    local args = read[kind]
    local text = args and redis.call(args[1], k, unpack(args, 2)) or kind
    if type(text) == 'table' then
      text = table.concat(text, ' ')
    end
    table.insert(found, string.format('%s (%s, %d ms): %s', k, kind, redis.call('PTTL', k), string.sub(text, 1, 200)))
  end
end
return table.concat(found, ', ')`

// deadLines counts the keys of lines in which nobody has been renewed in time. A line that does not go by itself is none of them.
const deadLines = `
local t, n = redis.call('TIME'), 0
local now = t[1] * 1000 + math.floor(t[2] / 1000)
for _, k in ipairs(redis.call('KEYS', 'il:{*}:qclaims:*')) do
  local dead = redis.call('PTTL', k) > 0
  for _, record in ipairs(redis.call('HVALS', k)) do
    local stop = string.match(record, '^w %d+ (%d+) ')
    dead = dead and stop and tonumber(stop) < now
  end
  if dead then
    n = n + 1 + redis.call('EXISTS', (string.gsub(k, ':qclaims:', ':qline:', 1)))
  end
end
return n`

// allRows counts the rows of all tables of a PostgreSQL.
const allRows = `select coalesce(sum((xpath('/row/n/text()', query_to_xml(format('select count(*) as n from %I.%I', schemaname, tablename), false, true, '')))[1]::text::bigint), 0)
from pg_tables where schemaname not in ('pg_catalog', 'information_schema')`

// mariaDBRows counts those of a MariaDB.
func mariaDBRows(ctx context.Context, s *servertest.Server, sessions bool) (n int, err error) {
	err = atMariaDB(s, "root", func(db *sql.DB) error {
		var tables sql.NullString
		err := db.QueryRowContext(ctx, "select group_concat(concat('`', table_schema, '`.`', table_name, '`')) from information_schema.tables "+
			"where table_schema not in ('mysql', 'sys', 'information_schema', 'performance_schema') and table_type = 'BASE TABLE'").Scan(&tables)
		if err != nil || !tables.Valid {
			return err
		}
		for table := range strings.SplitSeq(tables.String, ",") {
			var rows int
			if err := db.QueryRowContext(ctx, "select count(*) from "+table).Scan(&rows); err != nil {
				return err
			}
			n += rows
		}
		var over int
		if sessions {
			err = db.QueryRowContext(ctx, "select count(*) from interlock_session where valid_until < timestampdiff(microsecond, '1970-01-01', utc_timestamp(6))").Scan(&over)
		}
		n -= over
		return err
	})
	return n, err
}

var keysTotal = regexp.MustCompile(`(?m)^etcd_debugging_mvcc_keys_total (\S+)$`)

func etcdKeys(ctx context.Context, s *servertest.Server) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Addr()+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	r.Close = true
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return found(keysTotal, text, err)
}

var nodeCount = regexp.MustCompile(`(?m)^Node count: (\d+)`)

// nodes is how many a ZooKeeper has.
func nodes(s *servertest.Server) (int, error) {
	text, err := exchange(s, "srvr", "")
	return found(nodeCount, []byte(text), err)
}

func found(in *regexp.Regexp, text []byte, err error) (int, error) {
	m := in.FindSubmatch(text)
	if err != nil || m == nil {
		return 0, fmt.Errorf("torture: no count in %q: %w", text[:min(len(text), 100)], err)
	}
	f, err := strconv.ParseFloat(string(m[1]), 64)
	return int(f), err
}

var itemUntil = regexp.MustCompile(`\bexp=(-?\d+)\b`)

// memcachedItems counts those whose time is not over.
func memcachedItems(s *servertest.Server) (n int, err error) {
	text, err := exchange(s, "lru_crawler metadump all\r\n", "END")
	if err != nil {
		return 0, err
	}
	for _, m := range itemUntil.FindAllStringSubmatch(text, -1) {
		if at, err := strconv.ParseInt(m[1], 10, 64); err == nil && (at < 0 || time.Unix(at, 0).After(time.Now())) {
			n++
		}
	}
	return n, nil
}

// exchange sends a server a line and returns its answer: up to a line, or all of it where that is empty.
func exchange(s *servertest.Server, line, end string) (string, error) {
	conn, err := net.DialTimeout("tcp", s.Addr(), 5*time.Second)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, line); err != nil {
		return "", err
	}
	if end == "" {
		text, err := io.ReadAll(conn)
		return string(text), err
	}
	var b strings.Builder
	for in := bufio.NewScanner(conn); in.Scan(); {
		b.WriteString(in.Text() + "\n")
		if in.Text() == end {
			return b.String(), nil
		}
	}
	return "", fmt.Errorf("torture: the server at %s has not answered %q to the end", s.Addr(), line)
}

//go:build linux || darwin

package servers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/internal/servertest"
)

// oneRedis is one Redis that writes down whatever it acknowledges before it does.
type oneRedis struct {
	usual
	server   *servertest.Server
	redisson bool // the locks are Redisson's
}

// durable are the arguments of a Redis that loses nothing by a restart.
var durable = []string{"--appendonly", "yes", "--appendfsync", "always"}

func startOneRedis(ctx context.Context, redisson bool) (kind, error) {
	s, err := servertest.Start(ctx, servertest.Options{Args: durable})
	if err != nil {
		return nil, err
	}
	return &oneRedis{server: s, redisson: redisson}, nil
}

func (r *oneRedis) url() string {
	if r.redisson {
		return strings.Replace(r.server.URL(), "redis:", "redisson:", 1)
	}
	return r.server.URL()
}

func (r *oneRedis) nodes() []*servertest.Server { return []*servertest.Server{r.server} }
func (r *oneRedis) proxied() []string           { return addrs(r.nodes()) }
func (r *oneRedis) close() error                { return r.server.Close() }

func (r *oneRedis) harm(ctx context.Context, i *Injector, fault string) error {
	switch fault {
	case FaultPause:
		return i.pause(ctx, r.server)
	case FaultRestart:
		return i.restart(ctx, r.server)
	case FaultEvict:
		defer i.note("drops every key that has a TTL")
		return evict(r.server)
	}
	return fmt.Errorf("torture: no fault %q", fault)
}

// entries leaves out what package redissonlock notes beside a lock, which goes after an hour.
func (r *oneRedis) entries(context.Context) (int, error) {
	n, err := keys(r.server)
	if err != nil || !r.redisson {
		return n, err
	}
	notes, err := number(r.server, "EVAL", "return #redis.call('KEYS', ARGV[1])", "0", "il:{*}:redisson:*")
	return n - notes, err
}

// keys returns how many keys a Redis has.
func keys(s *servertest.Server) (int, error) { return number(s, "DBSIZE") }

// number returns the answer of a Redis to a command that is answered by a number.
func number(s *servertest.Server, command ...string) (int, error) {
	text, err := s.Do(command...)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(text)
}

// evict makes a server drop every key that has a TTL, as it does when its memory is full and its
// policy is volatile-lru. The four commands arrive in one piece and are carried out in one go, so
// nobody else is refused for want of memory.
func evict(s *servertest.Server) error {
	conn, err := net.DialTimeout("tcp", s.Addr(), 5*time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return err
	}
	commands := "CONFIG SET maxmemory-policy volatile-lru\r\nCONFIG SET maxmemory 1\r\nPING\r\nCONFIG SET maxmemory 0\r\n"
	if _, err := conn.Write([]byte(commands)); err != nil {
		return err
	}
	replies := bufio.NewReader(conn)
	var errs []error
	for range strings.Count(commands, "\n") {
		line, err := replies.ReadString('\n')
		if err != nil {
			return err
		}
		if strings.HasPrefix(line, "-") {
			errs = append(errs, errors.New(strings.TrimSpace(line)))
		}
	}
	return errors.Join(errs...)
}

// besideCounters is a script that describes a few keys which are no counters, and what is in them.
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

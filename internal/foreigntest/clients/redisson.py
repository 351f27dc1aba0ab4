"""Takes locks the way Redisson takes them, by lines, as the package foreigntest describes them.

    redisson.py KIND HOST:PORT NAME LEASE_MS

KIND is lock, fenced, fair, spin, read, write or multi (NAME is then several names with commas between). A lease below 0 is
that of a watchdog, which renews it at every third. On a Cluster one node is enough; there it tells and hears by messages of
the shard, as Redisson does with Redis 7 and later.

There is no Redisson here: this writes the same keys, values, times and messages as releases 3.31 and later, and has been
written from a description of them. What a lock of Redisson looks like:

    lock     hash NAME: CLIENT:THREAD -> holds, with the lease as its time to live
    fenced   the same, and the number redisson_lock_token:{NAME}, one more for every take
    fair     the same, and who waits: list redisson_lock_queue:{NAME}, until when: zset redisson_lock_timeout:{NAME}
    read     hash NAME: mode -> read, CLIENT:THREAD -> holds; {NAME}:CLIENT:THREAD:rwlock_timeout:1.. with a lease each
    write    hash NAME: mode -> write, CLIENT:THREAD:write -> holds
"""

import os
import queue
import sys
import threading
import time
import uuid

import redis

FAIR_PATIENCE = 300000  # ms that one who waits for ever may stand in a fair lock's line

# Every script answers a list: 1 and a detail if the lock is held now, or 0 and the ms that somebody else has left.
SCRIPTS = {
    "take": """
local holds = redis.call('hget', KEYS[1], ARGV[1])
if not holds and redis.call('exists', KEYS[1]) == 1 then
  return {0, redis.call('pttl', KEYS[1])}
end
local token = ''
if KEYS[2] then
  token = redis.call('incr', KEYS[2])
end
redis.call('hset', KEYS[1], ARGV[1], (holds or 0) + 1)
redis.call('pexpire', KEYS[1], ARGV[2])
return {1, token}""",
    "drop": """
local holds = tonumber(redis.call('hget', KEYS[1], ARGV[1]) or '0')
if holds == 0 then
  return redis.error_reply('NOTHELD by this thread')
elseif holds > 1 then
  redis.call('hset', KEYS[1], ARGV[1], holds - 1)
  redis.call('pexpire', KEYS[1], ARGV[2])
else
  redis.call('del', KEYS[1])
  if ARGV[4] ~= '' then
    redis.call(ARGV[3], ARGV[4], 0)
  end
end
return {1, ''}""",
    "keep": """
if redis.call('hget', KEYS[1], ARGV[1]) then
  return redis.call('pexpire', KEYS[1], ARGV[2])
end
return 0""",
    # KEYS lock, queue, times; ARGV thread, lease, how long it may wait, now
    "fair-take": """
while true do
  local head = redis.call('lindex', KEYS[2], 0)
  local over = head and redis.call('zscore', KEYS[3], head)
  if not over or tonumber(over) > tonumber(ARGV[4]) then break end
  redis.call('lpop', KEYS[2])
  redis.call('zrem', KEYS[3], head)
end
local head = redis.call('lindex', KEYS[2], 0)
if redis.call('exists', KEYS[1]) == 0 and (not head or head == ARGV[1]) then
  if head then
    redis.call('lpop', KEYS[2])
    redis.call('zrem', KEYS[3], ARGV[1])
    for _, other in ipairs(redis.call('zrange', KEYS[3], 0, -1)) do
      redis.call('zincrby', KEYS[3], -ARGV[3], other)
    end
  end
  redis.call('hset', KEYS[1], ARGV[1], 1)
  redis.call('pexpire', KEYS[1], ARGV[2])
  return {1, ''}
end
local left = redis.call('pttl', KEYS[1])
if not redis.call('zscore', KEYS[3], ARGV[1]) then
  local last = redis.call('lindex', KEYS[2], -1)
  local till = last and redis.call('zscore', KEYS[3], last)
  if till then left = till - ARGV[4] end
  redis.call('rpush', KEYS[2], ARGV[1])
  redis.call('zadd', KEYS[3], left + ARGV[4] + ARGV[3], ARGV[1])
end
return {0, math.max(0, left)}""",
    "fair-leave": """
local at, all = nil, redis.call('lrange', KEYS[2], 0, -1)
for i, who in ipairs(all) do
  if at then redis.call('zincrby', KEYS[3], -ARGV[3], who) end
  if who == ARGV[1] then at = i end
end
redis.call('lrem', KEYS[2], 0, ARGV[1])
redis.call('zrem', KEYS[3], ARGV[1])""",
    # ARGV thread, now, publish, channels
    "fair-drop": """
if redis.call('hdel', KEYS[1], ARGV[1]) == 0 then
  return redis.error_reply('NOTHELD by this thread')
end
while true do
  local head = redis.call('lindex', KEYS[2], 0)
  if not head then break end
  local over = redis.call('zscore', KEYS[3], head)
  if not over or tonumber(over) > tonumber(ARGV[2]) then
    redis.call(ARGV[3], ARGV[4] .. ':' .. head, 0)
    break
  end
  redis.call('lpop', KEYS[2])
  redis.call('zrem', KEYS[3], head)
end
return {1, ''}""",
    # ARGV thread, lease, beginning of the times of readers
    "read-take": """
local mode = redis.call('hget', KEYS[1], 'mode')
if mode == 'write' and redis.call('hexists', KEYS[1], ARGV[1] .. ':write') == 0 then
  return {0, redis.call('pttl', KEYS[1])}
end
local left = redis.call('pttl', KEYS[1])
if not mode then
  redis.call('hset', KEYS[1], 'mode', 'read')
end
local n = redis.call('hincrby', KEYS[1], ARGV[1], 1)
redis.call('set', ARGV[3] .. ARGV[1] .. ':rwlock_timeout:' .. n, 1, 'px', ARGV[2])
redis.call('pexpire', KEYS[1], math.max(left, tonumber(ARGV[2])))
return {1, ''}""",
    # ARGV thread, beginning of the times of readers, publish, channel
    "read-drop": """
local n = tonumber(redis.call('hget', KEYS[1], ARGV[1]) or '0')
if n == 0 then
  return redis.error_reply('NOTHELD by this thread')
end
redis.call('del', ARGV[2] .. ARGV[1] .. ':rwlock_timeout:' .. n)
if n == 1 then redis.call('hdel', KEYS[1], ARGV[1]) else redis.call('hset', KEYS[1], ARGV[1], n - 1) end
local longest = 0
for _, who in ipairs(redis.call('hkeys', KEYS[1])) do
  for i = 1, tonumber(redis.call('hget', KEYS[1], who)) or 0 do
    longest = math.max(longest, redis.call('pttl', ARGV[2] .. who .. ':rwlock_timeout:' .. i))
  end
end
if longest > 0 then
  redis.call('pexpire', KEYS[1], longest)
elseif redis.call('hget', KEYS[1], 'mode') ~= 'write' then
  redis.call('del', KEYS[1])
  redis.call(ARGV[3], ARGV[4], 0)
end
return {1, ''}""",
    "read-keep": """
local n = tonumber(redis.call('hget', KEYS[1], ARGV[1]) or '0')
for i = 1, n do
  redis.call('pexpire', ARGV[3] .. ARGV[1] .. ':rwlock_timeout:' .. i, ARGV[2])
end
return n > 0 and redis.call('pexpire', KEYS[1], ARGV[2]) or 0""",
    "write-take": """
local mode = redis.call('hget', KEYS[1], 'mode')
if mode and not (mode == 'write' and redis.call('hexists', KEYS[1], ARGV[1]) == 1) then
  return {0, redis.call('pttl', KEYS[1])}
end
redis.call('hset', KEYS[1], 'mode', 'write')
redis.call('hincrby', KEYS[1], ARGV[1], 1)
redis.call('pexpire', KEYS[1], ARGV[2])
return {1, ''}""",
    # ARGV thread, publish, channel
    "write-drop": """
if redis.call('hdel', KEYS[1], ARGV[1]) == 0 then
  return redis.error_reply('NOTHELD by this thread')
end
if redis.call('hlen', KEYS[1]) == 1 then
  redis.call('del', KEYS[1])
  redis.call(ARGV[2], ARGV[3], 1)
else
  redis.call('hset', KEYS[1], 'mode', 'read')
end
return {1, ''}""",
}


class Server:
    """The node that has a key, and how it tells."""

    def __init__(self, address, key):
        host, port = address.rsplit(":", 1)
        self.redis = redis.Redis(host=host, port=int(port))
        self.sharded = self.redis.info("cluster").get("cluster_enabled") == 1
        if self.sharded:
            cluster = redis.RedisCluster(host=host, port=int(port))
            self.redis = cluster.get_redis_connection(cluster.get_node_from_key(key))
            self.redis.execute_command("PUBSUB", "SHARDNUMSUB")
        self.publish = "spublish" if self.sharded else "publish"
        self.known = {}

    def run(self, script, keys, args):
        if script not in self.known:
            self.known[script] = self.redis.register_script(SCRIPTS[script])
        return self.known[script](keys=keys, args=args)

    def listen(self, channel):
        ear = self.redis.pubsub()
        ear.execute_command("SSUBSCRIBE" if self.sharded else "SUBSCRIBE", channel)
        ear.parse_response()
        return ear


class Lock:
    """A lock, held by one thread of one client. The four kinds differ in what they send."""

    def __init__(self, server, kind, name, lease):
        self.server, self.kind, self.name, self.lease = server, kind, name, abs(lease)
        self.renews = lease < 0
        self.thread = "%s:1" % uuid.uuid4()
        self.own = (name if "{" in name else "{%s}" % name) + ":"
        self.held = threading.Event()
        if kind == "write":
            self.thread += ":write"

    def beside(self, what):
        return what + ":" + (self.name if "{" in self.name else "{%s}" % self.name)

    def channel(self):
        if self.kind in ("read", "write"):
            return self.beside("redisson_rwlock")
        channel = self.beside("redisson_lock__channel")
        return channel + ":" + self.thread if self.kind == "fair" else channel

    def line(self):
        return [self.name, self.beside("redisson_lock_queue"), self.beside("redisson_lock_timeout")]

    def patience(self, wait):
        return FAIR_PATIENCE if wait < 0 else wait

    def ask(self, wait):
        run = self.server.run
        if self.kind == "fair":
            return run("fair-take", self.line(), [self.thread, self.lease, self.patience(wait), int(time.time() * 1000)])
        if self.kind in ("read", "write"):
            return run(self.kind + "-take", [self.name], [self.thread, self.lease, self.own])
        counter = [self.beside("redisson_lock_token")] if self.kind == "fenced" else []
        return run("take", [self.name] + counter, [self.thread, self.lease])

    def take(self, wait):
        """Asks, listens, asks again, and then whenever it is told or the holder's time is over."""
        ear, detail = None, None
        end = time.monotonic() + (wait / 1000 if wait >= 0 else 1e9)
        try:
            while True:
                held, detail = self.ask(wait)
                if held:
                    break
                left = end - time.monotonic()
                if left <= 0:
                    if self.kind == "fair":
                        self.server.run("fair-leave", self.line(), [self.thread, self.lease, self.patience(wait)])
                    return None
                if self.kind == "spin":
                    time.sleep(min(left, 0.02))
                elif ear is None:
                    ear = self.server.listen(self.channel())
                else:
                    ear.parse_response(block=False, timeout=max(0.001, min(left, detail / 1000 if detail >= 0 else 1e6)))
        finally:
            if ear is not None:
                ear.close()
        self.held.set()
        if self.renews:
            threading.Thread(target=self.watch, daemon=True).start()
        return " ".join([self.thread] + [str(detail)] * isinstance(detail, int))

    def watch(self):
        """Redisson's watchdog."""
        script = "read-keep" if self.kind == "read" else "keep"
        while True:
            time.sleep(self.lease / 3000)
            if not self.held.is_set() or not self.server.run(script, [self.name], [self.thread, self.lease, self.own]):
                return

    def drop(self):
        run, publish, channel = self.server.run, self.server.publish, self.channel()
        self.held.clear()
        if self.kind == "fair":
            run("fair-drop", self.line(), [self.thread, int(time.time() * 1000), publish, self.beside("redisson_lock__channel")])
        elif self.kind == "read":
            run("read-drop", [self.name], [self.thread, self.own, publish, channel])
        elif self.kind == "write":
            run("write-drop", [self.name], [self.thread, publish, channel])
        else:
            run("drop", [self.name], [self.thread, self.lease, publish, "" if self.kind == "spin" else channel])


class Multi:
    """Several locks, taken in the order in which they are named: all or none."""

    def __init__(self, address, names, lease):
        self.locks = [Lock(Server(address, name), "lock", name, lease) for name in names]

    def take(self, wait):
        end = time.monotonic() + wait / 1000
        for i, lock in enumerate(self.locks):
            if lock.take(wait if wait <= 0 else max(0, int((end - time.monotonic()) * 1000))) is None:
                for other in self.locks[:i]:
                    other.drop()
                return None
        return " ".join(lock.thread for lock in self.locks)

    def drop(self):
        for lock in self.locks:
            lock.drop()


def read(lines):
    """Ends the process when whoever drives it is gone, even in the middle of a wait."""
    for line in sys.stdin:
        lines.put(line)
    os._exit(0)


def main():
    kind, address, name, lease = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
    if kind == "multi":
        lock = Multi(address, name.split(","), lease)
    else:
        lock = Lock(Server(address, name), kind, name, lease)
    lines = queue.Queue()
    threading.Thread(target=read, args=(lines,), daemon=True).start()
    print("READY", flush=True)
    while True:
        command, argument = (lines.get().split() + ["0"])[:2]
        try:
            if command == "lock":
                detail = lock.take(int(argument))
                answer = "TIMEOUT" if detail is None else "LOCKED %s=%s" % (name, detail)
            elif command == "unlock":
                lock.drop()
                answer = "UNLOCKED"
            else:
                answer = "ERR Redisson's locks know no " + command
        except Exception as e:
            answer = "ERR %s: %s" % (type(e).__name__, e)
        print(answer, flush=True)


main()

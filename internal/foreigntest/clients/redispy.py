"""Drives redis-py's Lock by lines, as the package foreigntest describes them.

    redispy.py HOST:PORT NAME TTL_MS
"""

import os
import queue
import sys
import threading

import redis

POLL = 0.02  # seconds between the tries of one that waits

server, name, ttl = sys.argv[1], sys.argv[2], int(sys.argv[3])
host, port = server.rsplit(":", 1)
lock = redis.Redis(host=host, port=int(port)).lock(name, timeout=ttl / 1000, sleep=POLL)


def take(wait):
    if wait == 0:
        held = lock.acquire(blocking=False)
    else:
        held = lock.acquire(blocking_timeout=None if wait < 0 else wait / 1000)
    return "LOCKED %s=%s" % (name, lock.local.token.decode()) if held else "TIMEOUT"


def release(_):
    lock.release()
    return "UNLOCKED"


def extend(to):
    lock.extend(to / 1000, replace_ttl=True)
    return "EXTENDED"


def read(lines):
    """Ends the process when whoever drives it is gone, even in the middle of a wait."""
    for line in sys.stdin:
        lines.put(line)
    os._exit(0)


def main():
    lines = queue.Queue()
    threading.Thread(target=read, args=(lines,), daemon=True).start()
    lock.redis.ping()
    print("READY", flush=True)
    while True:
        command, argument = (lines.get().split() + ["0"])[:2]
        try:
            answer = {"lock": take, "unlock": release, "extend": extend}[command](int(argument))
        except Exception as e:
            answer = "ERR %s: %s" % (type(e).__name__, e)
        print(answer, flush=True)


main()

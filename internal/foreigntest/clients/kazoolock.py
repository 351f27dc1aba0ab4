"""Drives a lock of kazoo by lines, as the package foreigntest describes them.

    kazoolock.py KIND HOST:PORT NAME TTL_MS
"""

import os
import queue
import sys
import threading

from kazoo.client import KazooClient
from kazoo.exceptions import LockTimeout

kind, server, name, ttl = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
client = KazooClient(hosts=server, timeout=ttl / 1000)
make = {"kazoo-lock": client.Lock, "kazoo-read": client.ReadLock, "kazoo-write": client.WriteLock}[kind]
lock = make("/" + name, "kazoo")


def take(wait):
    try:
        held = lock.acquire(blocking=wait != 0, timeout=wait / 1000 if wait > 0 else None)
    except LockTimeout:
        held = False
    return "LOCKED /%s=%s" % (name, lock.node) if held else "TIMEOUT"


def release(_):
    lock.release()
    return "UNLOCKED"


def read(lines):
    """Ends the process when whoever drives it is gone, even in the middle of a wait."""
    for line in sys.stdin:
        lines.put(line)
    os._exit(0)


def main():
    lines = queue.Queue()
    threading.Thread(target=read, args=(lines,), daemon=True).start()
    client.start()
    print("READY", flush=True)
    while True:
        command, argument = (lines.get().split() + ["0"])[:2]
        try:
            answer = {"lock": take, "unlock": release}[command](int(argument))
        except Exception as e:
            answer = "ERR %s: %s" % (type(e).__name__, e)
        print(answer, flush=True)


main()

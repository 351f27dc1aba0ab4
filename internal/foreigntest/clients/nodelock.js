// Drives redlock 4, redlock 5 and redis-semaphore by lines, as the package foreigntest describes them.
//
//   NODE_PATH=FOLDER/node_modules node nodelock.js KIND HOST:PORT[,HOST:PORT…] NAME TTL_MS
'use strict';

const Redis = require('ioredis');

const poll = 20; // milliseconds between the tries of one that waits

const [kind, servers, name, ttlText] = process.argv.slice(2);
const ttl = Number(ttlText);
const clients = servers.split(',').map((server) => {
  const colon = server.lastIndexOf(':');
  return new Redis({ host: server.slice(0, colon), port: Number(server.slice(colon + 1)) });
});

// Each kind has lock(wait), which resolves to KEY=VALUE, or to null when the milliseconds are over, with unlock and extend
// beside it. A wait of 0 is one try.

// Both redlocks report a lock that is held, and everything else, as an error.
function redlock(manager, acquire) {
  let held;
  return {
    async lock(wait) {
      const deadline = Date.now() + wait;
      for (;;) {
        try {
          held = await acquire(manager);
          return `${name}=${held.value}`;
        } catch (error) {
          if (Date.now() + poll >= deadline) return null;
        }
        await new Promise((resolve) => setTimeout(resolve, poll));
      }
    },
    async unlock() {
      await (held.unlock ? held.unlock() : held.release());
    },
    async extend(to) {
      held = await held.extend(to);
    },
  };
}

function redlock4() {
  const Redlock = require('redlock');
  const manager = new Redlock(clients, { retryCount: 0 });
  manager.on('clientError', () => {}); // without a listener the process would end
  return redlock(manager, (m) => m.lock(name, ttl));
}

function redlock5() {
  const Redlock = require('redlock5').default;
  const manager = new Redlock(clients, { retryCount: 0 });
  return redlock(manager, (m) => m.acquire([name], ttl));
}

// A mutex of redis-semaphore renews itself while it is held. Another TTL needs another object with the same identity.
function semaphore(make) {
  const options = { lockTimeout: ttl, retryInterval: poll, onLockLost: (error) => console.error(error.message) };
  let held;
  return {
    async lock(wait) {
      // A time of 0 is over before the first try.
      held = make({ ...options, ...(wait === 0 ? { acquireAttemptsLimit: 1 } : { acquireTimeout: wait }) });
      return (await held.tryAcquire()) ? `mutex:${name}=${held.identifier}` : null;
    },
    async unlock() {
      await held.release();
    },
    async extend(to) {
      const { identifier } = held;
      held.stopRefresh();
      held = make({ ...options, lockTimeout: to, identifier, acquiredExternally: true });
      if (!(await held.tryAcquire())) throw new Error('cannot extend: the lock is no longer held');
    },
  };
}

const kinds = {
  redlock4,
  redlock5,
  'redis-semaphore': () => semaphore((o) => new (require('redis-semaphore').Mutex)(clients[0], name, o)),
  'redis-semaphore-redlock': () => semaphore((o) => new (require('redis-semaphore').RedlockMutex)(clients, name, o)),
};

async function answer(lock, command, argument) {
  switch (command) {
    case 'lock': {
      const taken = await lock.lock(argument < 0 ? Infinity : argument);
      return taken === null ? 'TIMEOUT' : `LOCKED ${taken}`;
    }
    case 'unlock':
      await lock.unlock();
      return 'UNLOCKED';
    case 'extend':
      await lock.extend(argument);
      return 'EXTENDED';
  }
  throw new Error(`unknown command ${command}`);
}

async function main() {
  const lock = kinds[kind]();
  const lines = require('readline').createInterface({ input: process.stdin });
  lines.on('close', () => process.exit(0)); // whoever drives this is gone, even in the middle of a wait
  await Promise.all(clients.map((client) => client.ping()));
  let before = Promise.resolve(); // one command at a time, in order
  lines.on('line', (line) => {
    const [command, argument] = line.trim().split(/\s+/);
    before = before
      .then(() => answer(lock, command, Number(argument)))
      .catch((error) => `ERR ${error.message.replace(/\s+/g, ' ')}`)
      .then((text) => process.stdout.write(text + '\n'));
  });
  process.stdout.write('READY\n');
}

main().catch((error) => {
  console.error(error.message);
  process.exit(1);
});

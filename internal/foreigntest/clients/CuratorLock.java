// One lock of Apache Curator, told what to do by lines: see the Go package. Arguments: kind, servers, name, session timeout in ms.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayDeque;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.retry.RetryOneTime;

public class CuratorLock {
  public static void main(String[] args) throws Exception {
    var client = CuratorFrameworkFactory.newClient(args[1], Integer.parseInt(args[3]), 10_000, new RetryOneTime(100));
    client.start();
    client.blockUntilConnected();
    var path = "/" + args[2];
    var lock = lock(client, args[0], path);
    say("READY");
    var in = new BufferedReader(new InputStreamReader(System.in));
    for (String line; (line = in.readLine()) != null; ) {
      var words = line.split(" ");
      try {
        switch (words[0]) {
          case "lock":
            if (lock.acquire(Long.parseLong(words[1]), TimeUnit.MILLISECONDS)) {
              say("LOCKED " + path + "=" + args[0]);
            } else {
              say("TIMEOUT");
            }
            break;
          case "unlock":
            lock.release();
            say("UNLOCKED");
            break;
          default:
            say("ERR unknown command");
        }
      } catch (Exception e) {
        say("ERR " + e);
      }
    }
    Runtime.getRuntime().halt(0); // without unlocking
  }

  static InterProcessLock lock(CuratorFramework client, String kind, String path) {
    switch (kind) {
      case "curator-mutex":
        return new InterProcessMutex(client, path);
      case "curator-read":
        return new InterProcessReadWriteLock(client, path).readLock();
      case "curator-write":
        return new InterProcessReadWriteLock(client, path).writeLock();
      case "curator-semaphore":
        return new Semaphore(new InterProcessSemaphoreV2(client, path, 2));
      case "curator-semaphore-mutex":
        return new InterProcessSemaphoreMutex(client, path);
      default:
        throw new IllegalArgumentException(kind);
    }
  }

  // Semaphore takes one more lease with each acquire.
  static class Semaphore implements InterProcessLock {
    final InterProcessSemaphoreV2 semaphore;
    final ArrayDeque<Lease> held = new ArrayDeque<>();

    Semaphore(InterProcessSemaphoreV2 semaphore) {
      this.semaphore = semaphore;
    }

    public void acquire() throws Exception {
      held.push(semaphore.acquire());
    }

    public boolean acquire(long time, TimeUnit unit) throws Exception {
      var lease = semaphore.acquire(time, unit);
      if (lease != null) {
        held.push(lease);
      }
      return lease != null;
    }

    public void release() {
      semaphore.returnLease(held.pop());
    }

    public boolean isAcquiredInThisProcess() {
      return !held.isEmpty();
    }
  }

  static void say(String line) {
    System.out.println(line);
    System.out.flush();
  }
}

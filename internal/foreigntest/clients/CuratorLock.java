// One lock of Apache Curator, told what to do by lines: see the Go package. Arguments: kind, servers, name, session timeout in ms.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryOneTime;

public class CuratorLock {
  public static void main(String[] args) throws Exception {
    var client = CuratorFrameworkFactory.newClient(args[1], Integer.parseInt(args[3]), 10_000, new RetryOneTime(100));
    client.start();
    client.blockUntilConnected();
    var path = "/" + args[2];
    var lock = new InterProcessMutex(client, path);
    say("READY");
    var in = new BufferedReader(new InputStreamReader(System.in));
    for (String line; (line = in.readLine()) != null; ) {
      var words = line.split(" ");
      try {
        switch (words[0]) {
          case "lock":
            if (lock.acquire(Long.parseLong(words[1]), TimeUnit.MILLISECONDS)) {
              say("LOCKED " + path + "=" + lock.getParticipantNodes().iterator().next());
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

  static void say(String line) {
    System.out.println(line);
    System.out.flush();
  }
}

// InterProcessMutexes of Apache Curator, told what to do by lines, for the bench. Argument: the server.
//
//   N lock NAME    N            thread N holds NAME
//   N unlock       N            and has released it
//
// "N ERR text" stands for whatever else happened. Each N is a thread of its own with mutexes of its own: threads that share
// one wake and hold up each other. All have one client. It ends with its input.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.concurrent.LinkedBlockingQueue;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryOneTime;

public class CuratorBench {
  static CuratorFramework client;

  public static void main(String[] args) throws Exception {
    client = CuratorFrameworkFactory.newClient(args[0], 30_000, 10_000, new RetryOneTime(100));
    client.start();
    client.blockUntilConnected();
    warm();
    say("READY");
    var threads = new HashMap<String, LinkedBlockingQueue<String[]>>();
    var in = new BufferedReader(new InputStreamReader(System.in));
    for (String line; (line = in.readLine()) != null; ) {
      var words = line.split(" ");
      threads.computeIfAbsent(words[0], CuratorBench::start).add(words);
    }
    Runtime.getRuntime().halt(0);
  }

  // warm has the code compiled that will be timed.
  static void warm() throws Exception {
    var mutex = new InterProcessMutex(client, "/warm-" + ProcessHandle.current().pid());
    for (int i = 0; i < 100; i++) {
      mutex.acquire();
      mutex.release();
    }
  }

  static LinkedBlockingQueue<String[]> start(String number) {
    var commands = new LinkedBlockingQueue<String[]>();
    var thread = new Thread(() -> {
      var mutexes = new HashMap<String, InterProcessMutex>();
      InterProcessMutex held = null;
      while (true) {
        try {
          var words = commands.take();
          if (words[1].equals("lock")) {
            var mutex = mutexes.computeIfAbsent(words[2], name -> new InterProcessMutex(client, "/" + name));
            mutex.acquire();
            held = mutex;
          } else {
            held.release();
          }
          say(number);
        } catch (Exception e) {
          say(number + " ERR " + e);
        }
      }
    });
    thread.setDaemon(true);
    thread.start();
    return commands;
  }

  static synchronized void say(String line) {
    System.out.println(line);
    System.out.flush();
  }
}

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.PrintStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.concurrent.ThreadLocalRandom;

/**
 * The official Java client as a peer of the test suite. It takes the options of the example `mqcat` and answers with the
 * same JSON lines, so that the suite drives both with one piece of code.
 *
 * <pre>
 * Peer ports                      free ports of a name server and two brokers, in one line
 * Peer consume OPTIONS            a member of a consumer group, until SIGTERM, SIGINT or the end of its input
 * Peer members                    members that join and leave by commands from standard input, as `mqcat members`
 * Peer serve --namesrv A --broker B   commands from standard input: create-topic, produce, committed, lite-pull
 * </pre>
 */
public final class Peer {
    private Peer() {
    }

    public static void main(String[] args) throws Exception {
        // The output is UTF-8 whatever the locale says.
        System.setOut(new PrintStream(new FileOutputStream(FileDescriptor.out), false, "UTF-8"));
        String command = args.length == 0 ? "" : args[0];
        Options options = new Options(args, 1);
        switch (command) {
            case "ports":
                System.out.println(freePorts());
                break;
            case "consume":
                Consuming.run(options);
                break;
            case "members":
                Membership.run();
                break;
            case "serve":
                Serving.run(options);
                break;
            default:
                System.err.println("Peer: unknown command '" + command + "'; expected ports, consume, members or serve");
                System.exit(2);
        }
    }

    /**
     * A broker listens on its port, the port two below and one for replication. All are chosen below the range that the
     * kernel hands out to outgoing connections, so that none of those takes a port while its owner restarts.
     */
    private static String freePorts() {
        for (int attempt = 0; attempt < 1000; attempt++) {
            int port = ThreadLocalRandom.current().nextInt(20_000, 30_000);
            int second = port + 4;
            if (allFree(port - 3, port - 2, port, port + 1, second - 2, second, second + 1)) {
                return (port - 3) + " " + port + " " + second;
            }
        }
        throw new IllegalStateException("no free ports between 20000 and 30000 on the loopback address");
    }

    private static boolean allFree(int... ports) {
        for (int port : ports) {
            try (ServerSocket socket = new ServerSocket(port, 1, InetAddress.getByName("127.0.0.1"))) {
                socket.getLocalPort();
            } catch (java.io.IOException taken) {
                return false;
            }
        }
        return true;
    }
}

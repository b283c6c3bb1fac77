import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;

/** Members of groups in one process: `join NAME OPTIONS` and `leave NAME` from standard input, as `mqcat members`. */
final class Membership {
    private static final int TELL_MILLIS = 50;
    private static final int ATTEMPTS = 3;
    private final Map<String, Consuming> members = new LinkedHashMap<>();

    private Membership() {
    }

    static void run() throws Exception {
        Membership membership = new Membership();
        Thread teller = new Thread(membership::tell);
        teller.setDaemon(true);
        teller.start();
        try {
            membership.obey();
        } catch (Exception failure) {
            System.err.println("Peer members: " + failure);
            Runtime.getRuntime().halt(1);
        }
        System.exit(0);
    }

    private void obey() throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.trim().split(" +");
            switch (words[0]) {
                case "join":
                    join(words[1], new Options(words, 2));
                    break;
                case "leave":
                    leave(words[1]);
                    break;
                default:
                    throw new IllegalArgumentException("unknown command '" + line + "'");
            }
        }
        for (String name : members.keySet().toArray(new String[0])) {
            leave(name);
        }
    }

    private void join(String name, Options options) throws Exception {
        Consuming member = start(name, options, 1);
        synchronized (members) {
            members.put(name, member);
        }
    }

    /** The client gives up its start when the first request to a name server fails; a busy machine is a reason to try again. */
    private static Consuming start(String name, Options options, int attempt) throws Exception {
        Consuming member = new Consuming(options, name, attempt);
        try {
            member.start();
            return member;
        } catch (Exception failure) {
            if (attempt == ATTEMPTS) {
                throw failure;
            }
            System.err.println("Peer members: " + name + ", attempt " + attempt + ": " + failure);
            return start(name, options, attempt + 1);
        }
    }

    private void leave(String name) {
        Consuming member;
        synchronized (members) {
            member = members.remove(name);
        }
        member.stop("command");
    }

    private void tell() {
        try {
            while (true) {
                synchronized (members) {
                    members.values().forEach(Consuming::tellAssignment);
                }
                Thread.sleep(TELL_MILLIS);
            }
        } catch (InterruptedException cut) {
            Thread.currentThread().interrupt();
        }
    }
}

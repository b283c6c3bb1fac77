import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;

/**
 * The official Java client and admin tools on any cluster, most of all on the embedded one: each case says in a line
 * whether it held, the last line counts them.
 *
 * <pre>
 * Suite NAMESRV [WORD...]    all cases, or those whose name contains a WORD
 * </pre>
 */
public final class Suite {
    interface Case {
        void run(Cluster cluster) throws Exception;
    }

    /** Far beyond what anything here takes. */
    private static final long DEADLINE_MILLIS = 60_000;

    private final Cluster cluster;
    private final List<String> words;
    private int passed;
    private int failed;

    private Suite(Cluster cluster, List<String> words) {
        this.cluster = cluster;
        this.words = words;
    }

    public static void main(String[] args) throws Exception {
        Suite suite = new Suite(new Cluster(args[0]), Arrays.asList(args).subList(1, args.length));
        Producers.cases(suite);
        Consumers.cases(suite);
        LitePull.cases(suite);
        Transactions.cases(suite);
        AdminTools.cases(suite);
        System.out.println(suite.passed + " passed, " + suite.failed + " failed");
        // Threads of clients that a failed case left behind do not hold the end up.
        Runtime.getRuntime().halt(suite.failed == 0 && suite.passed > 0 ? 0 : 1);
    }

    void add(String name, Case body) {
        if (!words.isEmpty() && words.stream().noneMatch(name::contains)) {
            return;
        }
        long begin = System.nanoTime();
        String result = "ok";
        try {
            body.run(cluster);
            passed++;
        } catch (Throwable why) {
            failed++;
            result = "FAILED: " + why;
            why.printStackTrace();
        }
        System.out.printf("%s ... %s (%d ms)%n", name, result, (System.nanoTime() - begin) / 1_000_000);
    }

    static void check(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    static void equal(Object expected, Object found, String what) {
        check(expected.equals(found), what + ": expected " + expected + ", found " + found);
    }

    /** Waits for a condition; what it throws counts as "not yet". */
    static void await(String what, Callable<Boolean> condition) throws Exception {
        long end = System.nanoTime() + DEADLINE_MILLIS * 1_000_000;
        Exception last = null;
        while (System.nanoTime() < end) {
            try {
                if (condition.call()) {
                    return;
                }
                last = null;
            } catch (Exception notYet) {
                last = notYet;
            }
            Thread.sleep(10);
        }
        throw new AssertionError("not within " + DEADLINE_MILLIS + " ms: " + what, last);
    }

    static List<String> numbers(int count) {
        List<String> numbers = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            numbers.add(String.valueOf(i));
        }
        return numbers;
    }
}

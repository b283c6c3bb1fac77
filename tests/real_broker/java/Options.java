import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Options in the form `--name value` or `--flag`, as mqcat takes them. */
final class Options {
    private static final List<String> FLAGS = Arrays.asList("--json", "--always-fail", "--quiet");
    private final List<String> words = new ArrayList<>();

    Options(String[] args, int from) {
        words.addAll(Arrays.asList(args).subList(Math.min(from, args.length), args.length));
        for (int i = 0; i < words.size(); i++) {
            if (!words.get(i).startsWith("--")) {
                throw new IllegalArgumentException("unexpected argument '" + words.get(i) + "'");
            }
            if (!FLAGS.contains(words.get(i)) && ++i >= words.size()) {
                throw new IllegalArgumentException(words.get(i - 1) + " needs a value");
            }
        }
    }

    boolean has(String name) {
        return words.contains(name);
    }

    List<String> all(String name) {
        List<String> values = new ArrayList<>();
        for (int i = 0; i < words.size(); i++) {
            boolean flag = FLAGS.contains(words.get(i));
            if (words.get(i).equals(name) && !flag) {
                values.add(words.get(i + 1));
            }
            i += flag ? 0 : 1;
        }
        return values;
    }

    String get(String name, String byDefault) {
        List<String> values = all(name);
        return values.isEmpty() ? byDefault : values.get(values.size() - 1);
    }

    /** The value of `--set KEY=VALUE`, else null. */
    String setting(String key) {
        String value = null;
        for (String pair : all("--set")) {
            if (pair.startsWith(key + "=")) {
                value = pair.substring(key.length() + 1);
            }
        }
        return value;
    }

    String require(String name) {
        String value = get(name, null);
        if (value == null) {
            throw new IllegalArgumentException("missing option " + name);
        }
        return value;
    }

    int number(String name, int byDefault) {
        return Integer.parseInt(get(name, Integer.toString(byDefault)));
    }
}

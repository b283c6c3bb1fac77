import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Map;

/** One JSON object in one line of standard output. The peer has no JSON library of its own, since the jars differ by version. */
final class Json {
    private final StringBuilder text = new StringBuilder();

    private Json() {
    }

    static Json event(String name) {
        Json json = new Json();
        json.text.append("{\"event\":");
        json.quote(name);
        return json;
    }

    Json put(String key, String value) {
        key(key);
        quote(value);
        return this;
    }

    Json put(String key, long value) {
        key(key);
        text.append(value);
        return this;
    }

    /** A value that is JSON already. */
    Json raw(String key, String json) {
        key(key);
        text.append(json);
        return this;
    }

    Json put(String key, Map<String, String> values) {
        key(key);
        text.append('{');
        String separator = "";
        for (Map.Entry<String, String> entry : values.entrySet()) {
            text.append(separator);
            quote(entry.getKey());
            text.append(':');
            quote(entry.getValue());
            separator = ",";
        }
        text.append('}');
        return this;
    }

    void print() {
        System.out.println(text.append('}'));
        System.out.flush();
    }

    static String quoted(String value) {
        Json json = new Json();
        json.quote(value);
        return json.text.toString();
    }

    static String sha256(byte[] bytes) {
        try {
            StringBuilder hex = new StringBuilder(64);
            for (byte b : MessageDigest.getInstance("SHA-256").digest(bytes)) {
                hex.append(Character.forDigit((b >> 4) & 15, 16)).append(Character.forDigit(b & 15, 16));
            }
            return hex.toString();
        } catch (NoSuchAlgorithmException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    private void key(String key) {
        text.append(',');
        quote(key);
        text.append(':');
    }

    private void quote(String value) {
        if (value == null) {
            text.append("null");
            return;
        }
        text.append('"');
        for (int i = 0; i < value.length(); i++) {
            char c = value.charAt(i);
            if (c == '"' || c == '\\') {
                text.append('\\').append(c);
            } else if (c < ' ') {
                text.append(String.format("\\u%04x", (int) c));
            } else {
                text.append(c);
            }
        }
        text.append('"');
    }
}

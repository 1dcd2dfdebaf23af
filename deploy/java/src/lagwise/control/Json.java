package lagwise.control;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A strict reader of JSON (RFC 8259), and the one piece of a writer that is needed.
 *
 * <p>Objects become {@code Map<String, Object>} in their order, of a name that is there twice the last value; arrays
 * {@code List<Object>}; whole numbers {@code Long}, or {@code Double.NaN} where they need more than 64 bits; numbers
 * with a fraction or exponent {@code Double}; null becomes null.
 */
public final class Json {
    private static final int DEEPEST = 500;
    private static final int MOST_DIGITS = 4300;

    private final String text;
    private int position;
    private int depth;

    private Json(String text) {
        this.text = text;
    }

    /** The object in these bytes. */
    public static Fields parse(byte[] data) throws DamagedException {
        Json json = new Json(decoded(data));
        Object value = json.value();
        json.skipSpace();
        if (json.position < json.text.length()) {
            throw json.damaged("something follows the document");
        }
        return new Fields(value, "document");
    }

    /** The text in quotes, with nothing escaped but what JSON requires. */
    public static String quoted(String text) {
        StringBuilder quoted = new StringBuilder("\"");
        for (int at = 0; at < text.length(); at++) {
            char c = text.charAt(at);
            switch (c) {
                case '"' -> quoted.append("\\\"");
                case '\\' -> quoted.append("\\\\");
                case '\n' -> quoted.append("\\n");
                case '\r' -> quoted.append("\\r");
                case '\t' -> quoted.append("\\t");
                case '\b' -> quoted.append("\\b");
                case '\f' -> quoted.append("\\f");
                default -> quoted.append(c < ' ' ? String.format("\\u%04x", (int) c) : String.valueOf(c));
            }
        }
        return quoted.append('"').toString();
    }

    private static String decoded(byte[] data) throws DamagedException {
        try {
            return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(data)).toString();
        } catch (CharacterCodingException error) {
            throw new DamagedException("not UTF-8");
        }
    }

    private Object value() throws DamagedException {
        skipSpace();
        if (++depth > DEEPEST) {
            throw damaged("nested too deep");
        }
        Object value = switch (peek()) {
            case '{' -> object();
            case '[' -> array();
            case '"' -> string();
            case 't' -> word("true", Boolean.TRUE);
            case 'f' -> word("false", Boolean.FALSE);
            case 'n' -> word("null", null);
            default -> number();
        };
        depth--;
        return value;
    }

    private Map<String, Object> object() throws DamagedException {
        Map<String, Object> fields = new LinkedHashMap<>();
        position++;
        skipSpace();
        if (peek() == '}') {
            position++;
            return fields;
        }
        while (true) {
            skipSpace();
            expect('"');
            position--;
            String name = string();
            skipSpace();
            expect(':');
            fields.put(name, value());
            if (isEnd('}')) {
                return fields;
            }
        }
    }

    private List<Object> array() throws DamagedException {
        List<Object> items = new ArrayList<>();
        position++;
        skipSpace();
        if (peek() == ']') {
            position++;
            return items;
        }
        while (true) {
            items.add(value());
            if (isEnd(']')) {
                return items;
            }
        }
    }

    /** Whether the bracket follows; otherwise a comma must. */
    private boolean isEnd(char bracket) throws DamagedException {
        skipSpace();
        if (peek() == bracket) {
            position++;
            return true;
        }
        expect(',');
        return false;
    }

    private String string() throws DamagedException {
        StringBuilder string = new StringBuilder();
        position++;
        while (true) {
            char c = next();
            if (c == '"') {
                return string.toString();
            }
            if (c < ' ') {
                throw damaged("a control character in a string");
            }
            string.append(c == '\\' ? escaped() : c);
        }
    }

    private char escaped() throws DamagedException {
        char c = next();
        return switch (c) {
            case '"', '\\', '/' -> c;
            case 'b' -> '\b';
            case 'f' -> '\f';
            case 'n' -> '\n';
            case 'r' -> '\r';
            case 't' -> '\t';
            case 'u' -> unit();
            default -> throw damaged("an escape that JSON does not have");
        };
    }

    private char unit() throws DamagedException {
        int unit = 0;
        for (int digits = 0; digits < 4; digits++) {
            char c = next();
            int digit = c < 128 ? Character.digit(c, 16) : -1;
            if (digit < 0) {
                throw damaged("\\u without four hexadecimal digits");
            }
            unit = unit * 16 + digit;
        }
        return (char) unit;
    }

    private Object number() throws DamagedException {
        int start = position;
        if (peek() == '-') {
            position++;
        }
        if (peek() == '0') {
            position++;
        } else {
            digits();
        }
        int whole = position;
        if (peek() == '.') {
            position++;
            digits();
        }
        if (peek() == 'e' || peek() == 'E') {
            position++;
            if (peek() == '+' || peek() == '-') {
                position++;
            }
            digits();
        }
        String number = text.substring(start, position);
        return position > whole ? (Object) Double.valueOf(number) : wholeNumber(number);
    }

    private Object wholeNumber(String number) throws DamagedException {
        if (number.length() > MOST_DIGITS) {
            throw damaged("a number of too many digits");
        }
        try {
            return Long.valueOf(number);
        } catch (NumberFormatException error) {
            return Double.NaN;
        }
    }

    private void digits() throws DamagedException {
        int start = position;
        while (peek() >= '0' && peek() <= '9') {
            position++;
        }
        if (position == start) {
            throw damaged("not a value");
        }
    }

    private Object word(String word, Object value) throws DamagedException {
        if (!text.startsWith(word, position)) {
            throw damaged("not a value");
        }
        position += word.length();
        return value;
    }

    private void skipSpace() {
        while (peek() == ' ' || peek() == '\t' || peek() == '\n' || peek() == '\r') {
            position++;
        }
    }

    private void expect(char wanted) throws DamagedException {
        if (next() != wanted) {
            throw damaged("no " + wanted);
        }
    }

    /** The next character, or NUL, which JSON has nowhere outside of strings, at the end. */
    private char peek() {
        return position < text.length() ? text.charAt(position) : '\0';
    }

    private char next() throws DamagedException {
        if (position >= text.length()) {
            throw damaged("the document ends too soon");
        }
        return text.charAt(position++);
    }

    private DamagedException damaged(String problem) {
        return new DamagedException("not JSON: " + problem + " at character " + position);
    }
}

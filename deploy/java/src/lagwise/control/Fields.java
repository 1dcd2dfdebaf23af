package lagwise.control;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** A JSON object whose fields are read by name, each of the right type or not at all. */
public final class Fields {
    private final Map<?, ?> values;
    private final String path;

    public Fields(Object value, String path) throws DamagedException {
        if (!(value instanceof Map<?, ?> map)) {
            throw new DamagedException(path + ": not an object");
        }
        this.values = map;
        this.path = path;
    }

    /** Whether the field is there at all, null included. */
    public boolean has(String name) {
        return values.containsKey(name);
    }

    public String text(String name) throws DamagedException {
        if (!(value(name) instanceof String text)) {
            throw damaged(name, "not a string");
        }
        return sendable(text);
    }

    /** A string, or null. */
    public String nullableText(String name) throws DamagedException {
        return value(name) == null ? null : text(name);
    }

    public boolean bool(String name) throws DamagedException {
        if (!(value(name) instanceof Boolean bool)) {
            throw damaged(name, "not true or false");
        }
        return bool;
    }

    /** A whole number from {@code least} on that was written without a fraction. */
    public long integer(String name, long least) throws DamagedException {
        if (!(value(name) instanceof Long number) || number < least) {
            throw damaged(name, "not a whole number of at least " + least);
        }
        return number;
    }

    /** Does nothing if the field is a finite number or null. */
    public void checkNullableNumber(String name) throws DamagedException {
        Object value = value(name);
        boolean isWhole = value instanceof Long number && number > Long.MIN_VALUE;
        boolean isFinite = value instanceof Double fraction && Double.isFinite(fraction);
        if (value != null && !isWhole && !isFinite) {
            throw damaged(name, "not a finite number");
        }
    }

    public Fields fields(String name) throws DamagedException {
        return new Fields(value(name), path + "." + name);
    }

    public List<Fields> listOfFields(String name) throws DamagedException {
        if (!(value(name) instanceof List<?> items)) {
            throw damaged(name, "not an array");
        }
        List<Fields> list = new ArrayList<>();
        for (Object item : items) {
            list.add(new Fields(item, path + "." + name));
        }
        return list;
    }

    /** The names of all fields, in their order. */
    public Set<String> names() throws DamagedException {
        @SuppressWarnings("unchecked")  // the reader makes no other maps
        Set<String> names = (Set<String>) values.keySet();
        for (String name : names) {
            sendable(name);
        }
        return names;
    }

    private Object value(String name) throws DamagedException {
        if (!values.containsKey(name)) {
            throw damaged(name, "missing");
        }
        return values.get(name);
    }

    /** JSON can escape half a surrogate pair, which no UTF-8 can hold: it would fail where it is sent on. */
    private String sendable(String text) throws DamagedException {
        for (int at = 0; at < text.length(); at += Character.charCount(text.codePointAt(at))) {
            int point = text.codePointAt(at);
            if (point >= Character.MIN_SURROGATE && point <= Character.MAX_SURROGATE) {
                throw damaged("a text", "holds half a surrogate pair");
            }
        }
        return text;
    }

    private DamagedException damaged(String name, String problem) {
        return new DamagedException(path + "." + name + ": " + problem);
    }
}

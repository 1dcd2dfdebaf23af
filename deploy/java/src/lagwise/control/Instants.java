package lagwise.control;

import java.time.DateTimeException;
import java.time.Instant;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.regex.Pattern;

/** Points in time as text: {@code 2026-01-31T12:00:00.000Z}. */
public final class Instants {
    private static final Pattern FORM =
        Pattern.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]{3})?Z");
    private static final DateTimeFormatter WRITTEN =
        DateTimeFormatter.ofPattern("uuuu-MM-dd'T'HH:mm:ss.SSS'Z'").withZone(ZoneOffset.UTC);

    private Instants() {
    }

    /** Milliseconds since 1970; the text may leave the milliseconds out. */
    public static long parse(String text) throws DamagedException {
        if (!FORM.matcher(text).matches() || text.startsWith("0000")) {
            throw new DamagedException("time: not like 2026-01-31T12:00:00.000Z");
        }
        try {
            String local = text.substring(0, text.length() - 1);
            return LocalDateTime.parse(local).toInstant(ZoneOffset.UTC).toEpochMilli();
        } catch (DateTimeException error) {
            throw new DamagedException("time: there is none such");
        }
    }

    public static String format(long instantMs) {
        return WRITTEN.format(Instant.ofEpochMilli(instantMs));
    }
}

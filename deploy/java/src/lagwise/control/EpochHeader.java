package lagwise.control;

import java.nio.charset.StandardCharsets;
import java.util.Optional;

import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;

/** The header {@code epoch} of a record, which a withdrawal has in place of a value. */
public final class EpochHeader {
    private static final int MOST_DIGITS = 19;

    private EpochHeader() {
    }

    /** The epoch; nothing where there is none, as in a null that somebody has written by hand. */
    public static Optional<Long> read(Headers headers) {
        for (Header header : headers) {
            if (header.key().equals("epoch")) {
                String text = header.value() == null ? "" : new String(header.value(), StandardCharsets.UTF_8);
                return text.matches("[0-9]{1," + MOST_DIGITS + "}") ? Optional.of(number(text)) : Optional.empty();
            }
        }
        return Optional.empty();
    }

    private static long number(String digits) {
        try {
            return Long.parseLong(digits);
        } catch (NumberFormatException error) {
            return Long.MAX_VALUE;
        }
    }
}

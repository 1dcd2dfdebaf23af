package lagwise.control;

import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Partition numbers as text: {@code 0-5,9}, ascending, neighbours joined; the empty text is none. */
public final class Ranges {
    private static final Pattern SPAN = Pattern.compile("(0|[1-9][0-9]{0,9})(?:-([1-9][0-9]{0,9}))?(,|\\z)");

    private Ranges() {
    }

    /**
     * The partitions, ascending.
     *
     * @param atMost number of partitions above which the text is refused before it is spread out
     */
    public static List<Integer> parse(String text, int atMost) throws DamagedException {
        List<Integer> partitions = new ArrayList<>();
        Matcher span = SPAN.matcher(text);
        long least = 0;
        for (int position = 0; position < text.length(); position = span.end()) {
            span.region(position, text.length());
            if (!span.lookingAt() || span.group(3).equals(",") && span.end() == text.length()) {
                throw new DamagedException("partition ranges: not like 0-5,9");
            }
            long first = Long.parseLong(span.group(1));
            long last = span.group(2) == null ? first : Long.parseLong(span.group(2));
            boolean isJoined = span.group(2) == null || last > first;
            if (first < least || !isJoined || last > Integer.MAX_VALUE) {
                throw new DamagedException("partition ranges: not ascending, not joined or too large");
            }
            if (last - first + 1 > atMost - partitions.size()) {
                throw new DamagedException("more than " + atMost + " partitions");
            }
            for (long partition = first; partition <= last; partition++) {
                partitions.add((int) partition);
            }
            least = last + 2;
        }
        return partitions;
    }
}

package lagwise.broker;

import java.util.AbstractSet;
import java.util.Arrays;
import java.util.Collection;
import java.util.Iterator;
import java.util.stream.IntStream;

/** Partition numbers of a topic: an immutable set that takes four bytes for each, where a HashSet takes sixty. */
final class PartitionNumbers extends AbstractSet<Integer> {
    private final int[] ascending;

    PartitionNumbers(Collection<Integer> numbers) {
        ascending = numbers.stream().mapToInt(Integer::intValue).sorted().distinct().toArray();
    }

    @Override
    public boolean contains(Object number) {
        return number instanceof Integer one && Arrays.binarySearch(ascending, one) >= 0;
    }

    @Override
    public Iterator<Integer> iterator() {
        return IntStream.of(ascending).iterator();
    }

    @Override
    public int size() {
        return ascending.length;
    }
}

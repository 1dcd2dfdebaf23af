package lagwise.broker;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.AuthorizationException;
import org.apache.kafka.common.errors.InterruptException;
import org.apache.kafka.common.errors.InvalidTopicException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;

/** Asks the cluster for the ids of topics: plans have names, and a broker shows an assignor ids. */
final class TopicIds implements AutoCloseable {
    private static final Duration CLOSE_WITHIN = Duration.ofSeconds(1);
    /** Each answer about a topic that is not there is an exception of a kilobyte, and a record can name 200,000. */
    private static final int MOST_AT_ONCE = 1000;

    private final ReaderConfig config;
    private Admin admin;

    TopicIds(ReaderConfig config) {
        this.config = config;
    }

    /**
     * Topic ids by name, of those that there are.
     *
     * @throws KafkaException the cluster does not answer
     */
    Map<String, Uuid> of(Set<String> names) {
        if (names.isEmpty()) {
            return Map.of();
        }
        if (admin == null) {
            admin = Admin.create(config.admin());
        }
        Map<String, Uuid> ids = new HashMap<>();
        List<String> all = new ArrayList<>(names);
        for (int from = 0; from < all.size(); from += MOST_AT_ONCE) {
            List<String> some = all.subList(from, Math.min(from + MOST_AT_ONCE, all.size()));
            admin.describeTopics(some).topicNameValues().forEach((name, topic) -> {
                Uuid id = id(topic);
                if (id != null) {
                    ids.put(name, id);
                }
            });
        }
        return ids;
    }

    private static Uuid id(KafkaFuture<TopicDescription> topic) {
        try {
            return topic.get().topicId();
        } catch (InterruptedException error) {
            throw new InterruptException(error);
        } catch (ExecutionException error) {
            Throwable cause = error.getCause();
            if (cause instanceof UnknownTopicOrPartitionException || cause instanceof InvalidTopicException
                || cause instanceof AuthorizationException) {
                return null;
            }
            throw cause instanceof KafkaException kafka ? kafka : new KafkaException(cause);
        }
    }

    @Override
    public void close() {
        if (admin != null) {
            admin.close(CLOSE_WITHIN);
        }
    }
}

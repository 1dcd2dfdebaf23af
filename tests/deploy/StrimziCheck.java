import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.dataformat.yaml.YAMLFactory;
import io.strimzi.api.kafka.model.common.UnknownPropertyPreserving;
import io.strimzi.api.kafka.model.kafka.Kafka;
import io.strimzi.api.kafka.model.kafka.KafkaClusterSpec;
import java.util.Arrays;
import java.util.List;

/** What Strimzi's operator would not take of a Kafka resource on standard input: a line for each, nothing if all is well. */
public final class StrimziCheck {
    private StrimziCheck() {}

    public static void main(String[] arguments) throws Exception {
        Kafka kafka = new ObjectMapper(new YAMLFactory()).readValue(System.in, Kafka.class);
        unknown("resource", kafka);
        unknown("spec", kafka.getSpec());
        KafkaClusterSpec spec = kafka.getSpec().getKafka();
        unknown("spec.kafka", spec);
        List<String> forbidden = Arrays.asList(KafkaClusterSpec.FORBIDDEN_PREFIXES.split(", *"));
        List<String> allowed = Arrays.asList(KafkaClusterSpec.FORBIDDEN_PREFIX_EXCEPTIONS.split(", *"));
        for (String name : spec.getConfig().keySet()) {
            if (forbidden.stream().anyMatch(name::startsWith) && !allowed.contains(name)) {
                System.out.println("forbidden: " + name);
            }
        }
    }

    private static void unknown(String where, UnknownPropertyPreserving of) {
        of.getAdditionalProperties().keySet().forEach(name -> System.out.println("unknown: " + where + "." + name));
    }
}

package lagwise.spring;

import java.util.Map;

import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.springframework.boot.ApplicationRunner;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.boot.autoconfigure.kafka.KafkaProperties;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.kafka.annotation.KafkaListener;
import org.springframework.kafka.config.KafkaListenerEndpointRegistry;
import org.springframework.kafka.core.DefaultKafkaConsumerFactory;
import org.springframework.kafka.listener.MessageListenerContainer;

import lagwise.follow.FollowingConsumer;

/** A Spring Boot application with a listener; a byte on standard input makes its group rebalance. */
@SpringBootApplication
public class Application {
    public static void main(String[] arguments) {
        SpringApplication.run(Application.class, arguments);
    }

    @KafkaListener(topics = "${topic}")
    void read(ConsumerRecord<String, String> record) {
        System.out.println("read " + record.partition() + ":" + record.offset());
    }

    @Bean
    ApplicationRunner rebalances(KafkaListenerEndpointRegistry registry) {
        return arguments -> {
            while (System.in.read() >= 0) {
                registry.getListenerContainers().forEach(MessageListenerContainer::enforceRebalance);
            }
        };
    }

    /** The bean of the docs. */
    @Configuration
    @ConditionalOnProperty("following")
    static class Following {
        @Bean
        DefaultKafkaConsumerFactory<Object, Object> kafkaConsumerFactory(KafkaProperties properties) {
            return new DefaultKafkaConsumerFactory<>(properties.buildConsumerProperties(null)) {
                @Override
                protected Consumer<Object, Object> createRawConsumer(Map<String, Object> config) {
                    return FollowingConsumer.create(config, getKeyDeserializer(), getValueDeserializer());
                }
            };
        }
    }
}

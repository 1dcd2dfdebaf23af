"""What the producer of plans is made from."""

from confluent_kafka import Producer

from assignor.protocol.control import encode_key, headers
from pipeline.config.model import ControlConfig
from pipeline.publish.outbox import _producer_properties


def test_plan_of_the_largest_size_allowed_is_taken_by_the_client() -> None:
    properties = _producer_properties({"bootstrap.servers": "localhost:1", "log_level": "0"}, "c")
    # Only with a broker can a transaction begin.
    without_transactions = {k: v for k, v in properties.items() if not k.startswith("transaction")}
    producer = Producer(without_transactions)
    value = b"x" * ControlConfig().max_record_bytes

    producer.produce("t", key=encode_key("c", "g"), value=value, headers=list(headers(1)))

    # It counts errors of the connection, too.
    assert len(producer) >= 1
    producer.purge()
    producer.flush(0)

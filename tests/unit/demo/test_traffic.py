import pytest

from pipeline.demo.scene import Topic
from pipeline.demo.traffic import send_due


class _Counting:
    def __init__(self) -> None:
        self.sent = [0, 0]

    def produce(self, _topic: str, *, value: bytes, partition: int) -> None:
        assert value
        self.sent[partition] += 1


def test_fractions_of_records_are_sent_in_a_later_round() -> None:
    producer = _Counting()
    topic = Topic(name="t", partitions=2, records_per_s=30, skew=1)

    owed = [0.0, 0.0]
    for _ in range(4):
        owed = send_due(producer, topic, owed, at_s=0, for_s=0.1)

    assert producer.sent == [8, 4]
    assert owed == pytest.approx([0, 0])

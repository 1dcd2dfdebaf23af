import pytest

from pipeline.operate.demo.processes.traffic import send_due, worth_s
from pipeline.operate.demo.scenario import PHASE_S, Topic


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


@pytest.mark.parametrize(
    ("last_s", "at_s", "expected"),
    [
        (0.1, 0.3, 0.2),
        (PHASE_S - 0.1, PHASE_S + 0.1, 40.2),
        (PHASE_S + 0.1, PHASE_S + 0.2, 0.1),
    ],
    ids=["within", "next-phase", "after-that"],
)
def test_each_later_phase_begins_with_a_burst(last_s: float, at_s: float, expected: float) -> None:
    topic = Topic(name="t", partitions=2, records_per_s=30, skew=1, burst_s=40)

    assert worth_s(topic, last_s=last_s, at_s=at_s) == pytest.approx(expected)

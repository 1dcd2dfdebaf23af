import pytest

from pipeline.demo.scene import GROUPS, HOT_SPOT_S, TOPICS, Topic

_ORDERS = next(topic for topic in TOPICS if topic.name == "orders")


@pytest.mark.parametrize("topic", TOPICS, ids=lambda topic: topic.name)
@pytest.mark.parametrize("at_s", [0.0, HOT_SPOT_S, 7.5 * HOT_SPOT_S])
def test_rates_add_up_to_the_topics_rate(topic: Topic, at_s: float) -> None:
    rates = topic.rates(at_s)

    assert len(rates) == topic.partitions
    assert sum(rates) == pytest.approx(topic.records_per_s)


def test_skewed_traffic_has_one_hottest_partition_which_moves_on() -> None:
    at_first, later = _ORDERS.rates(0), _ORDERS.rates(HOT_SPOT_S)

    assert at_first.index(max(at_first)) == 0
    assert later.index(max(later)) != 0
    assert sorted(later) == pytest.approx(sorted(at_first))


def test_even_traffic_is_even() -> None:
    even = Topic(name="even", partitions=4, records_per_s=100, skew=0)

    assert even.rates(0) == [25.0] * 4


def test_one_member_of_billing_is_buried_though_the_group_is_fast_enough() -> None:
    billing = next(group for group in GROUPS if group.group_id == "billing")
    rates = _ORDERS.rates(0)
    share = _ORDERS.partitions // len(billing.speeds)

    assert sum(billing.speeds) > sum(rates)
    assert sum(rates[:share]) > billing.speeds[0]
    assert max(rates) < min(billing.speeds)

import math

import pytest

from pipeline.config.load import load
from pipeline.operate.demo.folder import TEMPLATE
from pipeline.operate.demo.scenario import (
    BESIDE,
    CLUSTER,
    JAVA,
    KIP848,
    PAIRED,
    PHASE_S,
    Scenario,
    Topic,
)

_TOPICS = {topic.name: topic for topic in (*PAIRED.topics, *KIP848.topics, *BESIDE.topics)}
_ORDERS = _TOPICS["orders"]


@pytest.mark.parametrize("topic", _TOPICS.values(), ids=lambda topic: topic.name)
@pytest.mark.parametrize("at_s", [0.0, PHASE_S, 7.5 * PHASE_S])
def test_rates_add_up_to_the_topics_rate(topic: Topic, at_s: float) -> None:
    rates = topic.rates(at_s)

    assert len(rates) == topic.partitions
    assert sum(rates) == pytest.approx(topic.records_per_s)


def test_skewed_traffic_has_one_hottest_partition_which_moves_on() -> None:
    at_first, later = _ORDERS.rates(0), _ORDERS.rates(PHASE_S)

    assert at_first.index(max(at_first)) == 0
    assert later.index(max(later)) != 0
    assert sorted(later) == pytest.approx(sorted(at_first))


def test_even_traffic_is_even() -> None:
    even = Topic(name="even", partitions=4, records_per_s=100, skew=0)

    assert even.rates(0) == [25.0] * 4


def test_one_member_of_billing_is_buried_though_the_group_is_fast_enough() -> None:
    billing, rates = PAIRED.groups[0], _ORDERS.rates(0)
    first = sum(rates[: _ORDERS.partitions // len(billing.speeds)])
    spare = billing.speeds[0] - first

    assert len(set(billing.speeds)) == 1
    assert first * _ORDERS.burst_s / spare > 120
    assert sum(rates) * _ORDERS.burst_s / (sum(billing.speeds) - sum(rates)) < 30
    assert max(rates) < spare * 2


@pytest.mark.parametrize("at_s", [0.0, PHASE_S, 2 * PHASE_S])
def test_slow_member_of_shipping_alone_loses_ground_though_the_group_is_fast_enough(at_s: float) -> None:
    shipping, parcels = PAIRED.groups[2], _TOPICS["parcels"]
    rates, members = parcels.rates(at_s), range(len(shipping.speeds))
    shares = [sum(rates[member :: len(shipping.speeds)]) for member in members]

    assert parcels.burst_s == 0
    assert [member for member in members if shares[member] > shipping.speeds[member]] == [0]
    assert shipping.speeds[0] == shipping.speeds[1] / 2
    assert sum(rates) < sum(shipping.speeds) * 0.75


def test_slow_member_in_java_loses_ground_though_the_group_is_fast_enough() -> None:
    """Kafka's sticky assignor deals partitions out in turn."""
    (topic,), (group,) = JAVA.topics, JAVA.groups
    shares = [sum(topic.rates(0)[member::2]) for member in range(2)]

    assert shares[0] > group.speeds[0] * 1.2
    assert shares[1] < group.speeds[1]
    assert topic.records_per_s < sum(group.speeds) * 0.75


@pytest.mark.parametrize("at_s", [0.0, PHASE_S])
def test_slow_member_of_the_kip_848_group_loses_ground_whichever_half_it_gets(at_s: float) -> None:
    (topic,), (group, _) = KIP848.topics, KIP848.groups
    rates, half = topic.rates(at_s), topic.partitions // 2
    slow, fast = group.speeds

    assert topic.partitions == 2 * half
    for share in (sum(rates[:half]), sum(rates[half:])):
        assert slow * 1.2 < share < fast
    assert topic.records_per_s < sum(group.speeds) * 0.75


def test_one_plan_relieves_the_slow_member_of_the_kip_848_group() -> None:
    (topic,), (group, _) = KIP848.topics, KIP848.groups
    moves = max(2, math.ceil(load(TEMPLATE).plan.guards.moves_share * topic.partitions))
    slow, fast = group.speeds
    left = topic.partitions // 2 - moves

    assert 0 < topic.rates(0)[0] * left < slow * 0.75
    assert topic.rates(0)[0] * (topic.partitions - left) < fast * 0.75


def test_each_group_that_follows_has_a_control_group_that_does_not() -> None:
    pairs = [(group.group_id, control.group_id) for group, control in (*PAIRED.pairs(), *KIP848.pairs())]

    assert pairs == [
        ("billing", "billing-plain"),
        ("shipping", "shipping-plain"),
        ("refunds", "refunds-plain"),
    ]


def test_a_scenario_survives_its_way_into_another_process() -> None:
    assert Scenario.from_json(PAIRED.to_json()) == PAIRED


def test_configuration_is_about_the_groups_of_the_scenario() -> None:
    config = load(TEMPLATE)
    groups = (*PAIRED.groups, *KIP848.groups, *JAVA.groups, *BESIDE.groups)
    settings = {group.group_id: config.plan.for_group(group.group_id) for group in groups}
    kip848 = [group.group_id for group in groups if group.is_kip848]

    assert config.cluster.name == CLUSTER
    assert [name for name, own in settings.items() if own.dry_run] == [
        "billing-plain",
        "shipping-plain",
        "refunds-plain",
    ]
    assert [name for name in kip848 if settings[name].follow == "broker"] == ["refunds", "refunds-plain"]
    assert [name for name, own in settings.items() if own.poke] == ["refunds"]
    assert settings["fraud"].follow == "members"

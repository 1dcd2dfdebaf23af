import numpy as np
import pytest

from assignor.evaluation import validity
from assignor.model.group import Group
from assignor.strategies import lag_aware
from tests.support.assignors.groups import by_name, group, member
from tests.support.assignors.lag_judge import spread_bounds


def assigned(
    built: Group, scope: lag_aware.Scope = "topic", ties: lag_aware.Ties = "lag"
) -> dict[str, list[str]]:
    target = lag_aware.assign(built, scope=scope, ties=ties)
    validity.check(built, target, even="topic")
    return by_name(built, target)


def test_example_of_kip_169() -> None:
    built = group({"t0": 3}, member("C0", "t0"), member("C1", "t0"), lags={"t0": [100_000, 60_000, 50_000]})

    assert assigned(built) == {"C0": ["t0-0"], "C1": ["t0-1", "t0-2"]}


def test_two_topics_of_the_prototype_with_one_reader_for_the_second() -> None:
    built = group(
        {"topic1": 4, "topic2": 2},
        member("c1", "topic1", "topic2"),
        member("c2", "topic1"),
        lags={"topic1": [100_000, 100_000, 500, 1], "topic2": [900_000, 100_000]},
    )

    assert assigned(built) == {
        "c1": ["topic1-0", "topic1-2", "topic2-0", "topic2-1"],
        "c2": ["topic1-1", "topic1-3"],
    }


def test_without_lag_partition_i_goes_to_subscriber_i_modulo_n() -> None:
    built = group({"t": 5}, member("a", "t"), member("b", "t"))

    assert assigned(built) == {"a": ["t-0", "t-2", "t-4"], "b": ["t-1", "t-3"]}


def test_ties_of_lag_go_by_partition_number_and_ties_of_total_by_member_order() -> None:
    built = group({"t": 4}, member("z", "t", instance_id="0"), member("a", "t"), lags={"t": [5, 5, 5, 5]})

    assert assigned(built) == {"z": ["t-0", "t-2"], "a": ["t-1", "t-3"]}


def test_scope_topic_gives_the_heaviest_partition_of_every_topic_to_one_member() -> None:
    topics = {f"t{i}": 1 for i in range(6)}
    members = [member(name, *topics) for name in "abc"]
    built = group(topics, *members, lags={f"t{i}": [6 - i] for i in range(6)})

    counts = {name: len(partitions) for name, partitions in assigned(built).items()}

    assert counts == {"a": 6, "b": 0, "c": 0}


def test_scope_group_carries_totals_over_topics() -> None:
    topics = {f"t{i}": 1 for i in range(6)}
    members = [member(name, *topics) for name in "abc"]
    built = group(topics, *members, lags={f"t{i}": [6 - i] for i in range(6)})

    assert assigned(built, "group") == {"a": ["t0-0", "t5-0"], "b": ["t1-0", "t4-0"], "c": ["t2-0", "t3-0"]}


def test_count_comes_before_lag() -> None:
    built = group({"t": 4}, member("a", "t"), member("b", "t"), lags={"t": [1_000_000, 1, 1, 1]})

    assert assigned(built) == {"a": ["t-0", "t-3"], "b": ["t-1", "t-2"]}


@pytest.mark.parametrize("ties", ["lag", "kip"])
def test_example_of_kip_169_is_the_same_whatever_breaks_ties(ties: lag_aware.Ties) -> None:
    built = group({"t0": 3}, member("C0", "t0"), member("C1", "t0"), lags={"t0": [100_000, 60_000, 50_000]})

    assert assigned(built, ties=ties) == {"C0": ["t0-0"], "C1": ["t0-1", "t0-2"]}


def test_to_the_letter_lag_counts_only_while_all_have_as_many_partitions() -> None:
    built = group({"t": 6}, *(member(name, "t") for name in "abc"), lags={"t": [9, 8, 1, 5, 4, 3]})

    # Falling: 9, 8, 5 to a, b, c; then 4 to c, which has least; 3 goes to b by its lag, or to a by member order.
    assert assigned(built) == {"a": ["t-0", "t-2"], "b": ["t-1", "t-5"], "c": ["t-3", "t-4"]}
    assert assigned(built, ties="kip") == {"a": ["t-0", "t-5"], "b": ["t-1", "t-2"], "c": ["t-3", "t-4"]}


@pytest.mark.parametrize("n_members", [2, 3, 5, 10])
def test_certificate_is_reached(n_members: int) -> None:
    lags = [6] + [2] * (3 * n_members - 1)
    built = group({"t": len(lags)}, *(member(f"m{i}", "t") for i in range(n_members)), lags={"t": lags})

    target = lag_aware.assign(built)

    validity.check(built, target, even="topic")
    totals = np.bincount(target.member, weights=built.lag)
    assert spread_bounds(built).tolist() == [4]
    assert np.ptp(totals) == 4


def test_selecting_for_a_short_round_equals_sorting() -> None:
    n_members = 40
    topics = {f"t{i:02d}": 2 for i in range(30)}
    lags = {t: [i * 7 % 5, i * 3 % 4] for i, t in enumerate(topics)}
    built = group(topics, *(member(f"m{i:02d}", *topics) for i in range(n_members)), lags=lags)

    target = lag_aware.assign(built, scope="group")

    validity.check(built, target, even="topic")
    totals = [0] * n_members
    for t in sorted(topics, key=lambda t: (-sum(lags[t]), t)):
        free = list(range(n_members))
        for number in sorted((0, 1), key=lambda number: (-lags[t][number], number)):
            least = min(free, key=lambda m: (totals[m], m))
            free.remove(least)
            totals[least] += lags[t][number]
            assert target.member[list(topics).index(t) * 2 + number] == least

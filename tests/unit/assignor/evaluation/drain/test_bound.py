import numpy as np
import pytest

from assignor.evaluation.drain import bound
from assignor.evaluation.drain.bound import lower_bound_s
from assignor.model.group import Group
from assignor.model.members import Member, build_group
from assignor.model.topics import Topics
from assignor.strategies.registry import strategy

_N = 25


def _group(seed: int) -> Group:
    """A few members that are behind, some equally fast; in half of the groups the work comes in equal pieces."""
    rng = np.random.default_rng(seed)
    members, numbers = int(rng.integers(2, 9)), [int(rng.integers(1, 16)) for _ in range(2)]
    is_in_pieces = seed % 2 == 0
    topics = Topics.of(dict(zip("tu", numbers, strict=True)))
    speeds = rng.choice([500.0, 800.0, 1_000.0 * rng.random() + 1], members)
    return build_group(
        topics=topics,
        members=[
            Member(
                member_id=f"m{number}",
                topics=["t", "u"] if number % 3 or is_in_pieces else ["t"],
                owned={"t": range(numbers[0])[number::members]},
                generation=1,
                capacity=float(speeds[number]),
            )
            for number in range(members)
        ],
        lag=rng.integers(0, 1_000_000, topics.n_partitions) // (500_000 if is_in_pieces else 1),
        rate=rng.random(topics.n_partitions) * (0 if is_in_pieces else 200),
    )


def test_bin_packing_of_all_numbers_at_once_is_that_of_one_after_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at_once = [lower_bound_s(_group(seed)) for seed in range(_N)]
    monkeypatch.setattr(bound, "_AT_ONCE", -1)

    assert [lower_bound_s(_group(seed)) for seed in range(_N)] == at_once


def test_bound_that_the_strategy_hands_on_is_the_one_of_the_group() -> None:
    groups = [_group(seed) for seed in range(_N)]

    handed_on = [strategy("lag-sticky").assign(group, {}).bound_s for group in groups]

    assert any(one is not None for one in handed_on)
    for group, one in zip(groups, handed_on, strict=True):
        assert one in {None, lower_bound_s(group)}

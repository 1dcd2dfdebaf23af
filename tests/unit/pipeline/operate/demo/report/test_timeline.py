from datetime import timedelta

from pipeline.operate.demo.report.timeline import DRAINED_WITHIN_S, ONE_POLL_S, Point, Timeline
from pipeline.operate.demo.scenario import BESIDE, PAIRED, Scenario
from pipeline.operate.demo.snapshot import Snapshot
from tests.support.operate.demo_views import NOON, group, move, share, snapshot

_SCENARIO = Scenario(topics=PAIRED.topics, groups=(*PAIRED.groups, *BESIDE.groups))


_ARRIVALS = 40.0


def _seen(after_s: float, lag: int, behind_s: float | None, at_commit: int | None = 0) -> Snapshot:
    one = share(lag=lag, lag_seconds=behind_s, lag_at_commit=at_commit, arrival_rate=_ARRIVALS)
    return snapshot(group(one), seen_at=NOON + timedelta(seconds=after_s))


def test_a_group_is_drained_when_it_is_first_seen_to_be_hardly_behind() -> None:
    timeline = Timeline(_SCENARIO, began_at=NOON)

    for after_s, lag, behind_s in ((20, 900, None), (26, 500, 10.1), (32, 80, DRAINED_WITHIN_S), (38, 9, 1)):
        timeline.saw(_seen(after_s, lag, behind_s, at_commit=lag))

    (billing,) = timeline.groups()
    assert billing.points == tuple(Point(at_s=s, lag=n) for s, n in ((20, 900), (26, 500), (32, 80), (38, 9)))
    assert billing.was_behind
    assert billing.drained_s == 32


def test_a_group_that_keeps_up_has_nothing_to_drain() -> None:
    timeline = Timeline(_SCENARIO, began_at=NOON)

    for after_s in (20, 26):
        timeline.saw(_seen(after_s, 90, 1.0))

    (billing,) = timeline.groups()
    assert not billing.was_behind
    assert billing.drained_s is None


def test_young_records_are_a_backlog_all_the_same_if_many_were_unread_at_the_commits() -> None:
    timeline = Timeline(_SCENARIO, began_at=NOON)
    backlog = round(DRAINED_WITHIN_S * _ARRIVALS) + 1

    timeline.saw(_seen(5, backlog, None, at_commit=None))
    timeline.saw(_seen(11, 18_737, 8.0, at_commit=18_737))
    assert timeline.groups()[0].drained_s is None

    timeline.saw(_seen(17, backlog, 8.0, at_commit=round(ONE_POLL_S * _ARRIVALS) + 1))
    assert timeline.groups()[0].drained_s is None

    timeline.saw(_seen(23, backlog, 8.0, at_commit=round(ONE_POLL_S * _ARRIVALS)))
    assert timeline.groups()[0].drained_s == 23


def test_group_whose_lag_at_commit_is_unknown_is_not_drained() -> None:
    timeline = Timeline(_SCENARIO, began_at=NOON)

    timeline.saw(_seen(5, 90, None, at_commit=None))
    timeline.saw(_seen(11, 90, 1.0, at_commit=None))

    assert timeline.groups()[0].drained_s is None


def test_group_that_falls_behind_again_is_not_drained_until_that_is_over() -> None:
    timeline = Timeline(_SCENARIO, began_at=NOON)

    timeline.saw(_seen(5, 900, None))
    timeline.saw(_seen(11, 9, 1.0))
    timeline.saw(_seen(17, 9_000, 8.0, at_commit=9_000))
    assert timeline.groups()[0].drained_s is None

    timeline.saw(_seen(23, 9, 1.0))
    assert timeline.groups()[0].drained_s == 23


def test_what_was_before_the_beginning_does_not_count() -> None:
    timeline = Timeline(_SCENARIO, began_at=NOON)

    timeline.saw(_seen(-0.1, 900, None))
    timeline.saw(_seen(0.0, 90, 1.0))

    (billing,) = timeline.groups()
    assert [point.at_s for point in billing.points] == [0]
    assert not billing.was_behind


def test_a_group_that_is_always_behind_is_not_drained() -> None:
    timeline = Timeline(_SCENARIO, began_at=NOON)

    timeline.saw(_seen(20, 900, None))

    assert timeline.groups()[0].drained_s is None


def test_one_batch_is_one_point_however_often_it_is_looked_at() -> None:
    timeline = Timeline(_SCENARIO, began_at=NOON)

    timeline.saw(_seen(20, 900, None))
    timeline.saw(_seen(20, 900, None))

    assert len(timeline.groups()[0].points) == 1


def test_moves_are_counted_for_their_group_alone() -> None:
    timeline = Timeline(_SCENARIO, began_at=NOON)
    timeline.saw(snapshot(group(share()), group(share(), group_id="shipping"), seen_at=NOON))

    timeline.moved([move(at=NOON + timedelta(seconds=4)), move(group_id="shipping")])

    assert [(one.group_id, one.moves_at_s) for one in timeline.groups()] == [
        ("billing", (4.0,)),
        ("shipping", (0.0,)),
    ]


def test_groups_come_in_the_order_of_the_scenario_and_strangers_not_at_all() -> None:
    timeline = Timeline(_SCENARIO, began_at=NOON)
    names = ("stranger", "search", "billing")

    timeline.saw(snapshot(*(group(share(), group_id=name) for name in names), seen_at=NOON))

    assert [(one.group_id, one.follows) for one in timeline.groups()] == [
        ("billing", True),
        ("search", False),
    ]

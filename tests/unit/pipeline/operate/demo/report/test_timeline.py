from datetime import timedelta

from pipeline.operate.demo.report.timeline import DRAINED_WITHIN_S, Course, Point
from pipeline.operate.demo.scenario import BESIDE, TWINS, Scene
from pipeline.operate.demo.snapshot import Snapshot
from tests.support.demo_scenes import NOON, group, move, share, snapshot

_SCENE = Scene(topics=TWINS.topics, groups=(*TWINS.groups, *BESIDE.groups))


def _seen(after_s: float, lag: int, behind_s: float | None) -> Snapshot:
    return snapshot(group(share(lag=lag, lag_seconds=behind_s)), seen_at=NOON + timedelta(seconds=after_s))


def test_a_group_is_drained_when_it_is_first_seen_to_be_hardly_behind() -> None:
    course = Course(_SCENE, began_at=NOON)

    for after_s, lag, behind_s in ((20, 900, None), (26, 500, 10.1), (32, 80, DRAINED_WITHIN_S), (38, 9, 1)):
        course.saw(_seen(after_s, lag, behind_s))

    (billing,) = course.groups()
    assert billing.points == tuple(Point(at_s=s, lag=n) for s, n in ((20, 900), (26, 500), (32, 80), (38, 9)))
    assert billing.was_behind
    assert billing.drained_s == 32


def test_a_group_that_keeps_up_has_nothing_to_drain() -> None:
    course = Course(_SCENE, began_at=NOON)

    for after_s in (20, 26):
        course.saw(_seen(after_s, 90, 1.0))

    (billing,) = course.groups()
    assert not billing.was_behind
    assert billing.drained_s is None


def test_what_was_before_the_beginning_does_not_count() -> None:
    course = Course(_SCENE, began_at=NOON)

    course.saw(_seen(-0.1, 900, None))
    course.saw(_seen(0.0, 90, 1.0))

    (billing,) = course.groups()
    assert [point.at_s for point in billing.points] == [0]
    assert not billing.was_behind


def test_a_group_that_is_always_behind_is_not_drained() -> None:
    course = Course(_SCENE, began_at=NOON)

    course.saw(_seen(20, 900, None))

    assert course.groups()[0].drained_s is None


def test_one_batch_is_one_point_however_often_it_is_looked_at() -> None:
    course = Course(_SCENE, began_at=NOON)

    course.saw(_seen(20, 900, None))
    course.saw(_seen(20, 900, None))

    assert len(course.groups()[0].points) == 1


def test_moves_are_counted_for_their_group_alone() -> None:
    course = Course(_SCENE, began_at=NOON)
    course.saw(snapshot(group(share()), group(share(), group_id="shipping"), seen_at=NOON))

    course.moved([move(at=NOON + timedelta(seconds=4)), move(group_id="shipping")])

    assert [(one.group_id, one.moves_at_s) for one in course.groups()] == [
        ("billing", (4.0,)),
        ("shipping", (0.0,)),
    ]


def test_groups_come_in_the_order_of_the_scene_and_strangers_not_at_all() -> None:
    course = Course(_SCENE, began_at=NOON)
    names = ("stranger", "search", "billing")

    course.saw(snapshot(*(group(share(), group_id=name) for name in names), seen_at=NOON))

    assert [(one.group_id, one.follows) for one in course.groups()] == [("billing", True), ("search", False)]

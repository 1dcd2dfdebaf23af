import logging
from dataclasses import replace

import pytest

from assignor.clients.control import ControlState, Fed, Misfit, misfit, targets
from assignor.clients.plugin.membership import following
from assignor.protocol import control
from tests.support.followers.follow_plans import CLUSTER, GROUP, key_of, plan

KEY = control.encode_key(CLUSTER, GROUP)
PLAN = plan({"a": [0, 1], "b": []}, {"a": [0], "b": [1]}, epoch=5, generation=3, valid_until_ms=1000)


@pytest.fixture
def state() -> ControlState:
    return ControlState(cluster=CLUSTER, group=GROUP)


@pytest.fixture
def informed(state: ControlState) -> ControlState:
    assert state.feed(KEY, control.encode(PLAN)) is Fed.NEWER
    return state


def test_nothing_is_followed_before_the_first_record(state: ControlState) -> None:
    assert state.plan(0) is None
    assert state.epoch == 0


def test_plan_is_followed_until_the_millisecond_it_expires(informed: ControlState) -> None:
    assert informed.plan(999) == PLAN
    assert informed.plan(1000) is None


@pytest.mark.parametrize("epoch", [4, 5])
def test_epoch_that_is_not_newer_is_ignored(informed: ControlState, epoch: int) -> None:
    other = replace(PLAN, epoch=epoch, strategy="another")

    assert informed.feed(KEY, control.encode(other)) is Fed.OLD
    assert informed.plan(0) == PLAN


@pytest.mark.parametrize("protocol", ["consumer", "of a later version"])
def test_plan_for_another_protocol_is_followed_by_no_member_and_replaces_the_one_before(
    informed: ControlState, protocol: str
) -> None:
    other = replace(PLAN, epoch=6, group_protocol=protocol)

    assert informed.feed(KEY, control.encode(other)) is Fed.NEWER
    assert informed.newest(0) == (6, None, None)


def test_record_of_another_group_or_cluster_is_ignored(informed: ControlState) -> None:
    for cluster, group in [(CLUSTER, "other"), ("other", GROUP)]:
        other = replace(PLAN, epoch=9, cluster=cluster, group=group)

        assert informed.feed(key_of(other), control.encode(other)) is Fed.OTHER
    assert informed.plan(0) == PLAN


def test_value_that_names_another_group_than_its_key_is_damaged(informed: ControlState) -> None:
    other = replace(PLAN, epoch=9, group="other")

    assert informed.feed(KEY, control.encode(other)) is Fed.DAMAGED
    assert informed.plan(0) == PLAN


@pytest.mark.parametrize("epoch", [5, 6])
def test_withdrawal_of_this_epoch_or_a_later_one_ends_the_plan(informed: ControlState, epoch: int) -> None:
    assert informed.feed(KEY, None, control.headers(epoch)) is Fed.WITHDRAWN
    assert informed.plan(0) is None
    assert informed.epoch == epoch


def test_late_withdrawal_of_an_earlier_epoch_is_ignored(informed: ControlState) -> None:
    assert informed.feed(KEY, None, control.headers(4)) is Fed.OLD
    assert informed.plan(0) == PLAN


@pytest.mark.parametrize(
    "headers",
    [None, [], [("epoch", None)], [("epoch", b"\xff")], [("epoch", b"9" * 5000)], [("epoch", "")]],
    ids=["none", "empty", "null", "no digits", "too many digits", "no text"],
)
def test_withdrawal_without_an_epoch_ends_the_plan_and_keeps_the_epoch(
    informed: ControlState, headers: list[tuple[str, bytes | str | None]] | None
) -> None:
    assert informed.feed(KEY, None, headers) is Fed.WITHDRAWN
    assert informed.plan(0) is None
    assert informed.feed(KEY, control.encode(PLAN)) is Fed.OLD


def test_newer_dry_run_ends_the_plan_before_it(informed: ControlState) -> None:
    assert informed.feed(KEY, control.encode(replace(PLAN, epoch=6, dry_run=True))) is Fed.NEWER
    assert informed.plan(0) is None


def test_unknown_fields_are_ignored(state: ControlState) -> None:
    value = control.encode(PLAN).replace(b'{"schema":1,', b'{"schema":2,"shiny":[1],')

    assert state.feed(KEY, value) is Fed.NEWER
    assert state.plan(0) == PLAN


def test_damaged_records_are_counted_and_logged_once(
    informed: ControlState, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        fed = [informed.feed(KEY, value) for value in (b"{}", b"", b"\xff")]

    assert fed == [Fed.DAMAGED] * 3
    assert informed.damaged == 3
    assert informed.plan(0) == PLAN
    assert len(caplog.records) == 1


@pytest.mark.parametrize("key", [None, b"\xff", KEY.replace(b",", b", "), key_of(replace(PLAN, group="g2"))])
def test_record_under_any_other_key_is_not_decoded(
    informed: ControlState, monkeypatch: pytest.MonkeyPatch, key: bytes | None
) -> None:
    monkeypatch.delattr(control, "decode")

    assert informed.feed(key, b"{}") is Fed.OTHER
    assert (informed.damaged, informed.plan(0)) == (0, PLAN)


def test_epoch_and_plan_are_asked_for_together(informed: ControlState) -> None:
    assert informed.newest(999) == (5, PLAN, None)
    assert informed.newest(1000) == (5, None, PLAN)


OWNED = {("t", 0), ("t", 1)}
MISFITS = {
    "older generation": (PLAN, 4, "a", OWNED, Misfit.GENERATION),
    "newer generation": (PLAN, 2, "a", OWNED, Misfit.GENERATION),
    "stranger": (PLAN, 3, "c", OWNED, Misfit.MEMBER),
    "less than the base": (PLAN, 3, "a", {("t", 0)}, Misfit.BASE),
    "another topic": (PLAN, 3, "a", {("t", 0), ("u", 1)}, Misfit.BASE),
    "a partition dropped": (plan({"a": [0, 1]}, {"a": [0]}, generation=3), 3, "a", OWNED, Misfit.TARGET),
    "a partition added": (plan({"a": [0, 1]}, {"a": [0, 1, 2]}, generation=3), 3, "a", OWNED, Misfit.TARGET),
    "a partition twice": (
        plan({"a": [0, 1], "b": [2]}, {"a": [0, 1], "b": [1]}, generation=3),
        3,
        "a",
        OWNED,
        Misfit.TARGET,
    ),
    "a base that overlaps": (
        plan({"a": [0, 1], "b": [1]}, {"a": [0, 1], "b": [1]}, generation=3),
        3,
        "a",
        OWNED,
        Misfit.TARGET,
    ),
    "fits": (PLAN, 3, "a", OWNED, None),
    "fits a member without partitions": (PLAN, 3, "b", set(), None),
}


@pytest.mark.parametrize(
    ("record", "generation", "member", "owned", "expected"), MISFITS.values(), ids=MISFITS
)
def test_plan_is_followed_only_on_its_own_base(
    record: control.ControlRecord,
    generation: int,
    member: str,
    owned: set[tuple[str, int]],
    expected: Misfit | None,
) -> None:
    assert misfit(record, generation=generation, member=member, owned=owned) is expected


def test_targets_name_the_member_of_each_partition() -> None:
    assert targets(PLAN) == {("t", 0): "a", ("t", 1): "b"}


def test_withdrawal_of_an_epoch_beyond_64_bits_keeps_no_member_from_joining() -> None:
    state = ControlState(cluster="c", group="g")

    state.feed(control.encode_key("c", "g"), None, [("epoch", b"9" * 19)])

    assert following(state).user_data({}) is not None

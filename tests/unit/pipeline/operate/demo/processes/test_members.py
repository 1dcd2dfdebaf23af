from dataclasses import replace

import pytest

from assignor.clients.confluent import config as confluent_config
from pipeline.operate.demo.processes import members
from pipeline.operate.demo.processes.members import Pace, properties
from pipeline.operate.demo.scenario import BESIDE, KIP848, PAIRED

_GROUPS = {group.group_id: group for group in (*PAIRED.groups, *KIP848.groups, *BESIDE.groups)}


def test_static_members_have_an_instance_id_and_others_have_none() -> None:
    static = properties("b:1", _GROUPS["search"], 1)
    dynamic = properties("b:1", _GROUPS["billing"], 0)

    assert static["group.instance.id"] == static["client.id"] == "search-2"
    assert "group.instance.id" not in dynamic
    assert dynamic["client.id"] == "billing-1"


def test_a_group_brings_its_own_properties() -> None:
    assert properties("b:1", _GROUPS["fraud"], 0)["group.protocol"] == "consumer"


def test_pairs_differ_in_nothing_that_makes_a_difference_to_lag() -> None:
    following = properties("b:1", _GROUPS["billing"], 0)
    plain = properties("b:1", _GROUPS["billing-plain"], 0)

    differ = {name for name in following.keys() | plain.keys() if following.get(name) != plain.get(name)}
    assert differ == {"group.id", "client.id", "enable.auto.commit", "auto.commit.interval.ms"}


def test_kip_848_pair_differs_only_in_what_it_asks_the_broker_for() -> None:
    following = properties("b:1", _GROUPS["refunds"], 0)
    plain = properties("b:1", _GROUPS["refunds-plain"], 0)

    differ = {name for name in following.keys() | plain.keys() if following.get(name) != plain.get(name)}
    assert differ == {"group.id", "client.id", "group.remote.assignor"}
    assert following["group.remote.assignor"] == "lagwise"
    assert "group.remote.assignor" not in plain | properties("b:1", _GROUPS["fraud"], 0)


@pytest.mark.parametrize(
    ("group_id", "expected"), [("refunds", "Consumer"), ("billing", "Following")], ids=["KIP-848", "classic"]
)
def test_members_follow_by_themselves_unless_the_broker_does_it_for_them(
    monkeypatch: pytest.MonkeyPatch, group_id: str, expected: str
) -> None:
    made: list[str] = []
    monkeypatch.setattr(members, "Consumer", lambda _: made.append("Consumer") or _Subscribing())
    monkeypatch.setattr(members, "Following", lambda *_: made.append("Following"))

    members._member("b:1", KIP848, _GROUPS[group_id], 0)

    assert made == [expected]


class _Subscribing:
    """A consumer that subscribes."""

    def subscribe(self, _topics: list[str]) -> None:
        """Nothing."""


@pytest.mark.parametrize("commit_s", [1.0, 30.0])
def test_group_and_its_control_group_commit_as_often(
    monkeypatch: pytest.MonkeyPatch, commit_s: float
) -> None:
    following, plain = (replace(_GROUPS[name], commit_s=commit_s) for name in ("billing", "billing-plain"))
    clock = _Clock()
    commits: list[float] = []
    monkeypatch.setattr(members, "time", clock)
    monkeypatch.setattr(members, "Follower", lambda *_, **__: _Committing(clock, commits))
    member = members.Following({}, following)
    for second in range(100):
        clock.now_s = 1_000.0 + second
        member.consume(1, 0)

    assert commits[:3] == [1_000.0, 1_000.0 + commit_s, 1_000.0 + 2 * commit_s]
    assert properties("b:1", plain, 0)["auto.commit.interval.ms"] == 1_000 * commit_s


class _Clock:
    """Seconds that a test sets."""

    now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s


class _Committing:
    """A follower that notes when it is told to commit."""

    def __init__(self, clock: _Clock, commits: list[float]) -> None:
        self._clock, self._commits = clock, commits

    def consume(self, *_: object) -> None:
        """Nothing."""

    def commit(self) -> None:
        self._commits.append(self._clock.now_s)


def test_members_that_follow_may() -> None:
    for group in PAIRED.groups:
        if group.follows:
            confluent_config.check(properties("b:1", group, 0))


def test_a_member_is_as_fast_as_it_is_said_to_be_however_late_it_is_asked() -> None:
    now = [0.0]
    pace = Pace(333, clock=lambda: now[0])

    done = 0
    for step_s in (0.2, 0.21, 0.9, 0.003, 0.687):
        now[0] += step_s
        done += pace.due()

    assert done == 666


def test_a_member_that_was_stopped_does_not_make_up_for_it() -> None:
    now = [0.0]
    pace = Pace(100, clock=lambda: now[0])

    now[0] = 60.0

    assert pace.due() == 100

"""What a task makes of the answers of coordinators, and of silence."""

import threading
import warnings
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupState, ConsumerGroupType, KafkaError, KafkaException, TopicPartition

from pipeline.kafka.descriptions import UNASKED, UNREADABLE, Description
from pipeline.kafka.sources.groups import ask, listing
from pipeline.kafka.sources.groups.ask import Commit, GroupAnswer
from pipeline.kafka.sources.groups.settings import (
    NOT_ASKED_IN_TIME,
    GroupShare,
    GroupsSettings,
    ListedGroup,
    shared_out,
)

TIMED_OUT, NOT_FOUND = KafkaError._TIMED_OUT, KafkaError.GROUP_ID_NOT_FOUND


class Admin:
    """Coordinators that say what a test wants; every group is a stable classic one, and has committed nothing.

    Attributes:
        described: What describes a group, or the code of an error, by its name.
        offsets: Offsets by group and partition of topic t, or the code of an error.
        most: Groups that were asked for at the same time.
    """

    def __init__(self) -> None:
        self.described: dict[str, Any] = {}
        self.offsets: dict[str, dict[int, int] | int] = {}
        self.asked_for_offsets: list[str] = []
        self.most = 0
        self._now = 0
        self._lock = threading.Lock()

    def describe_consumer_groups(self, names: list[str], *, request_timeout: float) -> dict[str, Any]:
        """As `AdminClient`."""
        assert request_timeout >= 1
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        (name,) = names
        plain = SimpleNamespace(
            members=[],
            partition_assignor="range",
            state=ConsumerGroupState.STABLE,
            type=ConsumerGroupType.CLASSIC,
            coordinator=SimpleNamespace(id=2, host="kafka-2", port=9092),
        )
        return {name: _future(self.described.get(name, plain))}

    def list_consumer_group_offsets(
        self, requests: Iterable[Any], *, request_timeout: float
    ) -> dict[str, Any]:
        """As `AdminClient`."""
        assert request_timeout >= 1
        (request,) = requests
        with self._lock:
            self._now -= 1
            self.asked_for_offsets.append(request.group_id)
        found = self.offsets.get(request.group_id, {})
        if isinstance(found, int):
            return {request.group_id: _future(found)}
        partitions = [TopicPartition("t", number, offset) for number, offset in found.items()]
        return {request.group_id: _future(SimpleNamespace(topic_partitions=partitions))}


def _future(value: Any) -> Future[Any]:
    future: Future[Any] = Future()
    if isinstance(value, int):
        future.set_exception(KafkaException(KafkaError(value)))
    else:
        future.set_result(value)
    return future


@pytest.fixture
def admin(monkeypatch: pytest.MonkeyPatch) -> Admin:
    made = Admin()
    monkeypatch.setattr(ask, "admin_of", lambda _properties: made)
    monkeypatch.setattr(listing, "admin_of", lambda _properties: made)
    return made


def settings(**more: Any) -> GroupsSettings:
    plain = {
        "groups_include": (".*",),
        "groups_exclude": ("lagwise.*",),
        "request_timeout_s": 5.0,
        "at_once": 3,
    }
    return GroupsSettings(**{"properties": {}, **plain, **more})


def asked(
    *names: str, kind: str = "classic", state: str | None = "Stable", **more: Any
) -> dict[str, GroupAnswer]:
    share = GroupShare(groups=tuple(ListedGroup(name, kind, state) for name in names), at_once=3)
    return {one.group.group_id: one for one in ask.ask(settings(**more), share)}


def described(*given: TopicPartition, state: str = "STABLE", kind: str = "CLASSIC") -> SimpleNamespace:
    member = SimpleNamespace(
        member_id="m",
        group_instance_id=None,
        client_id="c",
        host="/h",
        assignment=SimpleNamespace(topic_partitions=[*given]),
    )
    return SimpleNamespace(
        members=[member],
        partition_assignor="range",
        state=ConsumerGroupState[state],
        type=ConsumerGroupType[kind],
    )


def test_group_is_told_with_members_and_commits_and_no_commit_is_no_offset(admin: Admin) -> None:
    given = [TopicPartition("t", 1), TopicPartition("t", 0), TopicPartition("u", 2)]
    admin.described["g"] = described(*given, state="COMPLETING_REBALANCING")
    admin.offsets["g"] = {0: 7, 1: -1001}

    told = asked("g")["g"]

    assert told.error is None
    assert told.group == ListedGroup("g", "classic", "CompletingRebalance")
    assert told.members is not None
    assert [(one.member_id, one.assigned) for one in told.members] == [("m", {"t": [0, 1], "u": [2]})]
    assert told.commits == (Commit("t", 0, 7, None),)


@pytest.mark.parametrize(
    ("state", "kind", "assigned"),
    [
        ("STABLE", "CLASSIC", {}),
        ("PREPARING_REBALANCING", "CLASSIC", None),
        ("COMPLETING_REBALANCING", "CLASSIC", None),
        ("COMPLETING_REBALANCING", "UNKNOWN", None),
        ("UNKNOWN", "CONSUMER", {}),
    ],
)
def test_empty_assignment_is_unknown_while_a_classic_group_rebalances(
    admin: Admin, state: str, kind: str, assigned: dict[str, list[int]] | None
) -> None:
    admin.described["g"] = described(state=state, kind=kind)

    members = asked("g", kind="unknown", state=None)["g"].members

    assert members is not None
    assert [one.assigned for one in members] == [assigned]


def test_assignment_whose_topics_a_broker_does_not_name_is_unknown(admin: Admin) -> None:
    # As kfake answers ConsumerGroupDescribe: with topic ids alone.
    admin.described["g"] = described(TopicPartition("t", 1), TopicPartition("", 0), kind="CONSUMER")

    members = asked("g", kind="consumer")["g"].members

    assert members is not None
    assert [one.assigned for one in members] == [None]


@pytest.mark.parametrize(
    ("listed", "kind", "expected"),
    [
        ("classic", "CONSUMER", "consumer"),
        ("consumer", "CLASSIC", "classic"),
        ("consumer", "UNKNOWN", "consumer"),
    ],
)
def test_group_that_was_converted_since_it_was_listed_has_the_type_that_its_coordinator_describes(
    admin: Admin, listed: str, kind: str, expected: str
) -> None:
    admin.described["g"] = described(kind=kind)

    assert asked("g", kind=listed)["g"].group.group_type == expected


def test_answer_that_cannot_be_read_leaves_its_group_without_one_and_others_with_theirs(admin: Admin) -> None:
    admin.described["broken"] = SimpleNamespace(state=ConsumerGroupState.STABLE)
    admin.offsets["g"] = {0: 7}

    told = asked("broken", "g")

    assert (told["broken"].error or "").startswith(f"{UNREADABLE}: AttributeError: ")
    assert told["g"].commits == (Commit("t", 0, 7, None),)


@pytest.mark.parametrize("of", ["described", "offsets"])
def test_group_whose_coordinator_is_silent_has_no_answer_and_others_do(admin: Admin, of: str) -> None:
    getattr(admin, of)["silent"] = TIMED_OUT
    admin.offsets["g"] = {0: 7}

    told = asked("silent", "g")

    words = {
        "described": "its coordinator did not answer: ",
        "offsets": "its coordinator, broker 2 (kafka-2:9092), did not return its commits: ",
    }
    assert (told["silent"].error or "").startswith(words[of])
    assert (told["silent"].members, told["silent"].commits) == (None, ())
    assert told["g"].commits == (Commit("t", 0, 7, None),)


def test_coordinator_that_does_not_describe_the_group_is_not_asked_for_its_offsets(admin: Admin) -> None:
    admin.described["g"] = KafkaError.NOT_COORDINATOR

    assert asked("g")["g"].error is not None
    assert admin.asked_for_offsets == []


def test_coordinator_without_the_group_says_nothing_about_its_commits(admin: Admin) -> None:
    dead = SimpleNamespace(members=[], partition_assignor="", state=ConsumerGroupState.DEAD, type=None)
    admin.described |= {"dead": dead, "not-found": NOT_FOUND}

    for told in (asked("dead", "not-found"), asked("dead", "not-found", kind="unknown")):
        assert all("does not know the group" in (one.error or "") for one in told.values())


def test_group_of_a_type_that_is_not_described_and_does_not_commit_has_an_answer(admin: Admin) -> None:
    admin.described["share"] = admin.offsets["share"] = NOT_FOUND

    told = asked("share", kind="unknown")["share"]

    assert (told.error, told.members, told.commits) == (None, None, ())


@pytest.mark.parametrize("offset", [-1, -2])
def test_negative_offset_that_is_not_the_word_for_none_makes_the_whole_group_unknown(
    admin: Admin, offset: int
) -> None:
    admin.offsets["g"] = {0: 7, 1: offset}

    told = asked("g")["g"]

    assert (told.commits, told.error) == (
        (),
        f"its coordinator returns offset {offset} for its commit in t-1",
    )


def test_names_that_the_client_would_cut_short_are_not_asked_for(admin: Admin) -> None:
    told = asked("", "g\0h")

    assert {one.error for one in told.values()} == {"the client cannot describe a group of this name"}
    assert admin.asked_for_offsets == []


def test_groups_for_which_no_time_is_left_are_not_asked_for(admin: Admin) -> None:
    assert {one.error for one in asked("g", "h", request_timeout_s=0.5).values()} == {NOT_ASKED_IN_TIME}
    assert admin.asked_for_offsets == []


def test_no_more_groups_are_asked_for_at_once_than_the_share_allows(admin: Admin) -> None:
    assert len(asked(*(f"g{number}" for number in range(50)))) == 50

    assert 1 <= admin.most <= 3


def test_client_that_cannot_be_made_leaves_all_groups_without_an_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ask, "admin_of", _raising(KafkaError._AUTHENTICATION))

    assert all(one.error is not None for one in asked("g", "h").values())


def _raising(code: int) -> Callable[[Any], Any]:
    def raises(_properties: Any) -> Any:
        raise KafkaException(KafkaError(code))

    return raises


def of_brokers(
    monkeypatch: pytest.MonkeyPatch,
    valid: list[Any],
    errors: list[Any],
    *,
    others: tuple[str, ...] | None = (),
    assigned: Mapping[str, tuple[bytes, ...]] = MappingProxyType({}),
) -> None:
    """Brokers that list these groups of consumers, and these others; None if they do not list the others."""
    found = SimpleNamespace(valid=valid, errors=errors)
    members_of = {
        name: [SimpleNamespace(assignment=one) for one in given] for name, given in assigned.items()
    }

    def list_groups(**_options: Any) -> list[Any]:
        if others is None:
            raise KafkaException(KafkaError(TIMED_OUT))
        warnings.warn("use list_consumer_groups", DeprecationWarning, stacklevel=1)
        names = (*(one.group_id for one in valid), *others)
        return [SimpleNamespace(id=name, members=members_of.get(name, ())) for name in names]

    made = SimpleNamespace(list_consumer_groups=lambda **_options: _future(found), list_groups=list_groups)
    monkeypatch.setattr(listing, "admin_of", lambda _properties: made)


def test_listing_has_the_wanted_groups_with_types_and_states(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = [
        SimpleNamespace(group_id="b", type=ConsumerGroupType.CONSUMER, state=ConsumerGroupState.UNKNOWN),
        SimpleNamespace(group_id="a", type=ConsumerGroupType.CLASSIC, state=ConsumerGroupState.EMPTY),
        SimpleNamespace(group_id="c", type=ConsumerGroupType.UNKNOWN, state=ConsumerGroupState.STABLE),
        SimpleNamespace(group_id="lagwise-1", type=ConsumerGroupType.CLASSIC, state=ConsumerGroupState.EMPTY),
    ]
    of_brokers(monkeypatch, groups, [])

    found = listing.listed(settings())

    assert found.error is None
    assert found.groups == (
        ListedGroup("a", "classic", "Empty"),
        ListedGroup("b", "consumer", None),
        ListedGroup("c", "unknown", "Stable"),
    )


def test_groups_of_other_protocols_are_listed_and_that_they_are_missing_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain = SimpleNamespace(group_id="g", type=ConsumerGroupType.CLASSIC, state=ConsumerGroupState.EMPTY)
    of_brokers(monkeypatch, [plain], [], others=("connect-x", "lagwise-2", "streams-x"))

    found = listing.listed(settings())
    of_brokers(monkeypatch, [plain], [], others=None)
    partial = listing.listed(settings())

    stored = listing.completed(
        partial, others={"connect-x", "g", "lagwise-2"}, unreadable=(), wanted=settings().wanted
    )
    other = [ListedGroup(name, "unknown", None, is_other=True) for name in ("connect-x", "streams-x")]
    assert (found.groups, found.error) == ((other[0], ListedGroup("g", "classic", "Empty"), other[1]), None)
    assert partial.groups == (ListedGroup("g", "classic", "Empty"),)
    assert (stored.groups, stored.error) == ((*partial.groups, other[0]), partial.error)
    assert (partial.error or "").startswith(
        "groups of Streams, Connect and other protocols could not be listed"
    )


def test_group_whose_assignments_the_client_cannot_read_is_told_by_the_list_and_never_asked_about(
    admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = b"\0\0\0\1\0\1t\0\0\0\1\0\0\0\0"
    assigned = {
        "ends-the-process": (b"\0\0" + topic, b"\0"),
        "no-utf-8": (b"\0\1\0\0\0\1\0\2\xff\xfe\0\0\0\1\0\0\0\0",),
        # The client does not look at either.
        "no-user-data": (b"\0\0" + topic,),
        "negative-version": (b"\xff\xff" + topic + b"\0\0\0\0",),
        "nothing-assigned": (b"",),
        "empty": (),
    }
    plain = {"type": ConsumerGroupType.CLASSIC, "state": ConsumerGroupState.STABLE}
    consumers = [SimpleNamespace(group_id=name, **plain) for name in assigned]
    with monkeypatch.context() as patched:
        of_brokers(patched, consumers, [], others=("connect",), assigned=assigned | {"connect": (b"\0",)})
        found = listing.listed(settings())
    asked_about: list[str] = []
    monkeypatch.setattr(ask, "describe_groups", lambda _, names, **__: asked_about.extend(names) or {})

    share = GroupShare(groups=found.groups, at_once=2)
    told = [
        {one.group.group_id: one.error for one in answers(settings(), share)}
        for answers in (ask.ask, ask.ask_after_crash)
    ]

    readable = {"connect", "no-user-data", "negative-version", "nothing-assigned", "empty"}
    assert told == 2 * [{name: None if name in readable else UNREADABLE for name in (*assigned, "connect")}]
    assert {*asked_about} == {*admin.asked_for_offsets} == readable


def test_group_of_another_protocol_has_its_commits_and_unknown_members(admin: Admin) -> None:
    dead = SimpleNamespace(members=[], partition_assignor="", state=ConsumerGroupState.DEAD, type=None)
    # Kafka's client refuses to describe groups of Connect's workers, and gets no answer about Streams groups.
    admin.described |= {"connect": KafkaError._INVALID_ARG, "streams": dead, "idle": dead}
    admin.offsets |= {"connect": {0: 7}, "streams": {1: 8}}
    share = GroupShare(
        groups=tuple(ListedGroup(name, "unknown", None, is_other=True) for name in admin.described), at_once=1
    )

    told = {one.group.group_id: (one.error, one.members, one.commits) for one in ask.ask(settings(), share)}

    assert told == {
        "connect": (None, None, (Commit("t", 0, 7, None),)),
        "streams": (None, None, (Commit("t", 1, 8, None),)),
        "idle": (None, None, ()),
    }


def test_listing_without_one_broker_says_that_there_may_be_more(monkeypatch: pytest.MonkeyPatch) -> None:
    group = SimpleNamespace(group_id="a", type=ConsumerGroupType.CLASSIC, state=ConsumerGroupState.EMPTY)
    of_brokers(monkeypatch, [group], [KafkaException(KafkaError(TIMED_OUT))])

    found = listing.listed(settings())

    assert [one.group_id for one in found.groups] == ["a"]
    assert (found.error or "").startswith("1 broker(s) did not list their groups: ")


@pytest.mark.parametrize("wrapped", [KafkaException, lambda error: error])
def test_broker_that_refuses_to_list_is_told_in_words_with_the_page_of_rights(
    monkeypatch: pytest.MonkeyPatch, wrapped: Any
) -> None:
    of_brokers(monkeypatch, [], [wrapped(KafkaError(KafkaError.CLUSTER_AUTHORIZATION_FAILED, "not allowed"))])

    assert listing.listed(settings()).error == (
        "1 broker(s) did not list their groups: not allowed (deploying-security.md lists the rights that lagwise needs)"
    )


def test_listing_that_fails_has_no_groups_and_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "admin_of", _raising(KafkaError._TRANSPORT))

    found = listing.listed(settings())

    assert (found.groups, (found.error or "")[:27]) == ((), "groups could not be listed:")


def names(share: GroupShare) -> list[str]:
    return [one.group_id for one in share.groups]


def groups(count: int) -> list[ListedGroup]:
    return [ListedGroup(f"g{number:03}", "classic", None) for number in range(count)]


def test_few_groups_are_one_share_and_many_as_many_as_run_at_once() -> None:
    assert [len(one.groups) for one in shared_out(groups(80), tasks=4, at_once=50, doubtful={}, tick=1)] == [
        80
    ]
    found = shared_out(groups(950), tasks=4, at_once=50, doubtful={}, tick=1)
    assert [(len(one.groups), one.at_once) for one in found] == [(238, 12), (238, 12), (237, 12), (237, 12)]
    assert sorted(name for one in found for name in names(one)) == [one.group_id for one in groups(950)]
    assert shared_out([], tasks=4, at_once=50, doubtful={}, tick=1) == []


def test_groups_without_an_answer_come_last_and_those_nobody_was_asked_about_first() -> None:
    doubtful = {"g000": "its coordinator did not answer: timed out", "g003": NOT_ASKED_IN_TIME}

    (share,) = shared_out(groups(4), tasks=1, at_once=5, doubtful=doubtful, tick=1)

    first, *answered, last = names(share)
    assert (first, {*answered}, last) == ("g003", {"g001", "g002"}, "g000")


def test_with_too_many_groups_for_a_batch_each_has_its_turn() -> None:
    every, asked = {one.group_id for one in groups(400)}, set[str]()
    doubtful: dict[str, str] = {}
    for tick in range(40):
        (share,) = shared_out(groups(400), tasks=1, at_once=5, doubtful=doubtful, tick=tick)
        turn = {*names(share)[:80]}
        asked |= turn
        doubtful = dict.fromkeys(every - turn, NOT_ASKED_IN_TIME)

    assert asked == every


def test_after_a_crash_the_groups_on_which_the_client_fails_are_not_asked_about(
    admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = Description(state="STABLE", kind="CLASSIC", members=())
    said = {
        "fatal": KafkaException(KafkaError(KafkaError._FAIL, UNREADABLE)),
        "plain": plain,
        "late": KafkaException(KafkaError(TIMED_OUT, UNASKED)),
        # Kafka's client describes no share groups.
        "share": KafkaException(KafkaError(NOT_FOUND)),
    }
    monkeypatch.setattr(ask, "describe_groups", lambda *_, **__: said)
    share = GroupShare(
        groups=tuple(ListedGroup(name, "classic", "Stable") for name in ("", *said)), at_once=2
    )

    told = {one.group.group_id: one.error for one in ask.ask_after_crash(settings(), share)}

    assert told == {
        "": "the client cannot describe a group of this name",
        "fatal": UNREADABLE,
        "late": NOT_ASKED_IN_TIME,
        "plain": None,
        "share": None,
    }
    assert {*admin.asked_for_offsets} == {"plain", "share"}

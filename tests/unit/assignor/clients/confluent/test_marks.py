"""What hand-overs commit and look at, as a confluent-kafka client is told to."""

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from assignor.clients.confluent import looks
from assignor.protocol.acks import Follows, Release, Taken
from tests.support.followers.follow_setup import HEAD, Setup, at

RELEASED = "lagwise:1:release:1:5:1"
TAKEN = "lagwise:1:taken:1:6:1"


def give(setup: Setup) -> None:
    setup.topics.incoming = [Follows(**HEAD)]
    setup.poll()


def test_hand_over_is_committed_with_its_mark(following: Setup) -> None:
    give(following)

    assert following.consumer.sent_metadata[1] == RELEASED


@pytest.mark.parametrize("asynchronous", [True, False])
def test_metadata_of_the_user_stays_before_the_mark(following: Setup, asynchronous: bool) -> None:
    following.follower.commit(offsets=[TopicPartition("t", 1, 45, "batch 7")], asynchronous=asynchronous)
    following.poll()

    give(following)

    assert following.consumer.sent_metadata[1] == f"batch 7{RELEASED}"


def test_metadata_of_a_user_before_stays_where_nobody_has_committed_since(setup: Setup) -> None:
    setup.consumer.metadata = {0: "batch 6", 1: "batch 7lagwise:1:taken:0:1:1"}
    setup.consumer.will("on_revoke")
    setup.consumer.will("on_assign", [0, 1])
    setup.poll()
    setup.topics.offered = None
    setup.poll()
    commits = setup.follower._reading.commits

    assert commits.finished[("t", 0)].metadata == "batch 6"
    assert commits.finished[("t", 1)].metadata == "batch 7"


def test_new_owner_commits_what_it_has_found_and_gives_it_on_with_the_same_metadata(setup: Setup) -> None:
    setup.given(2, metadata="batch 9")

    setup.poll()

    assert setup.consumer.sent_metadata[2] == f"batch 9{TAKEN}"
    assert setup.follower._reading.commits.finished[("t", 2)] == (70, "batch 9")


def test_user_reads_metadata_without_marks(setup: Setup) -> None:
    setup.consumer.metadata = {0: "batch 6", 1: f"batch 7{RELEASED}"}

    found = setup.follower.committed([at(0), at(1), at(3)], timeout=1)

    assert [(place.offset, place.metadata) for place in found] == [
        (40, "batch 6"),
        (40, "batch 7"),
        (-1001, ""),
    ]


def test_metadata_that_leaves_no_room_for_the_mark_is_left_out_and_said_so(
    following: Setup, caplog: pytest.LogCaptureFixture
) -> None:
    following.follower.commit(offsets=[TopicPartition("t", 1, 45, "x" * 4096)], asynchronous=False)
    following.consumer.metadata_at_most = 4096

    give(following)
    following.poll()

    assert following.consumer.sent_metadata[1] == RELEASED
    assert [ack.offset for ack in following.topics.written if isinstance(ack, Release)] == [45]
    assert "leaves no room for the hand-over mark" in caplog.text


def test_look_that_is_not_answered_is_repeated_while_the_rest_is_read(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looks, "_AGAIN_AFTER_S", 0.0)
    setup.given(2)
    setup.consumer.silent = True
    setup.poll()
    assert setup.follower._steering.is_waiting
    setup.consumer.silent = False

    setup.poll()

    assert Taken in [type(ack) for ack in setup.topics.written]


def test_look_is_given_up_when_the_coordinator_is_silent_for_long(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looks, "_GIVE_UP_AFTER_S", 0.0)
    setup.given(2)
    setup.consumer.silent = True

    setup.poll()

    assert not setup.follower._steering.is_waiting
    assert setup.follower.state.held == {("t", 0), ("t", 1)}


def test_nothing_is_asked_of_the_coordinator_while_no_plan_gives_anything(
    following: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(*_: object, **__: object) -> None:
        raise KafkaException(KafkaError(KafkaError._FAIL))

    monkeypatch.setattr(following.consumer, "committed", asked)
    forged = Release(**HEAD, to="a", topic="t", partition=2, hop=1, offset=70)
    for _ in range(5):
        following.topics.incoming.append(forged)
        following.poll()

    assert following.follower.state.held == {("t", 0), ("t", 1)}

"""Batches that ask coordinators: what is told, what is not told, and what is gone, in the tables."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline.config.model import Config, SourceConfig
from pipeline.fold.asked import UNNAMED, Asked
from pipeline.kafka.asking import UNASKABLE
from pipeline.kafka.descriptions import UNREADABLE
from pipeline.kafka.ghosts import Committed, GhostHunt
from pipeline.run.batch.asked import is_whole, remarks_of
from pipeline.run.batch.confirmation import confirm_rows, find_ghosts
from pipeline.run.batch.groups import store_group_history, store_groups
from pipeline.run.batch.lag import store_lag
from pipeline.run.batch.topics import store_topic_offsets
from tests.support.job.batches import batch_of, idle_driver
from tests.support.job.frames import NOW_MS, decoded_rows, member
from tests.support.job.step_batches import StepBatches

Row = dict[str, Any]
STEPS = (find_ghosts, confirm_rows, store_topic_offsets, store_group_history, store_groups, store_lag)
UNRECORDED: Row = {"offsets_partition": None, "position": None}
GROUP = ["group_id", "state", "members", "unconfirmed_reason"]
SILENT = "its coordinator did not answer: timed out"


class Coordinators:
    """Stands for `ghosts.Brokers`.

    Attributes:
        dead: Groups that their coordinators deny.
        asked: About whom they were asked.
    """

    def __init__(self) -> None:
        self.dead: set[str] = set()
        self.asked: list[set[str]] = []

    def are_gone(self, groups: Committed) -> frozenset[str]:
        """Those of the groups that are dead."""
        if groups:
            self.asked.append({*groups})
        return frozenset(self.dead & groups.keys())


class Told(StepBatches):
    """Batches of a job that asks coordinators, on one topic of two partitions."""

    def __init__(self, root: str, source: SourceConfig) -> None:
        self.coordinators = Coordinators()
        hunt: Any = GhostHunt(brokers=self.coordinators)  # type: ignore[arg-type]
        super().__init__(root, *STEPS, config=Config(source=source), ghosts=hunt)

    def batch(
        self, *rows: Row, listed: tuple[str, ...], error: str | None = None, topic: str = "id", **more: Any
    ) -> None:
        """One in which the brokers list these groups, and the topic has this id."""
        ends = [
            {"row_kind": "log_offset", "partition": number, "log_start_offset": 0, "log_end_offset": 100}
            | {"last_stable_offset": 100, "observed_at_ms": NOW_MS + self._batches * 1000, "topic_id": topic}
            for number in (0, 1)
        ]
        listing = [{"row_kind": "group_listing", "error": error}]
        names = [{"row_kind": "listed", "group_id": name} for name in listed]
        self.run(*listing, *names, *rows, *ends, **more)

    def asked(self) -> dict[str, tuple[int, int]]:
        """What the newest stamp says of when groups were asked for, by the number of the batch."""
        stamp = self.store.stamp("partition_lag")
        assert stamp is not None
        self.driver.progress.stamp = stamp
        return {
            group: ((at_ms - NOW_MS) // 1000, (since_ms - NOW_MS) // 1000)
            for group, (at_ms, since_ms) in stamp.asked.items()
        }

    def lags(self) -> dict[tuple[str, int], tuple[Any, ...]]:
        """Committed offset, lag and mark by group and partition."""
        columns = ["group_id", "partition", "committed_offset", "lag", "unconfirmed_reason"]
        return {
            (row["group_id"], row["partition"]): (
                row["committed_offset"],
                row["lag"],
                row["unconfirmed_reason"],
            )
            for row in self.store.rows("partition_lag", columns)
        }


@pytest.fixture
def told(tmp_path: Path) -> Told:
    return Told(str(tmp_path), SourceConfig(offsets="admin"))


def answer(group_id: str, **offsets: int) -> list[Row]:
    """All rows of a group that has committed `p<number>`."""
    commits = [
        {"row_kind": "commit", "group_id": group_id, "partition": int(name[1:]), "committed_offset": offset}
        | UNRECORDED
        for name, offset in offsets.items()
    ]
    return [{"row_kind": "asked", "group_id": group_id}, group(group_id), *commits]


def group(group_id: str, **fields: Any) -> Row:
    told = {"row_kind": "group", "group_id": group_id, "group_type": "classic", "state": "Stable"}
    return told | {"members": [member("m", topics=None)]} | UNRECORDED | fields


def silent(group_id: str, why: str = SILENT) -> list[Row]:
    return [
        {"row_kind": "asked", "group_id": group_id, "error": why},
        group(group_id, state=None, members=None),
    ]


def test_commit_is_what_the_coordinator_says_and_goes_when_it_names_it_no_more(told: Told) -> None:
    told.batch(*answer("a", p0=40, p1=100), listed=("a",))
    assert told.lags() == {("a", 0): (40, 60, None), ("a", 1): (100, 0, None)}

    told.batch(*answer("a", p0=30), listed=("a",))
    assert told.lags() == {("a", 0): (30, 70, None)}


def test_commit_is_news_only_when_its_offset_is_another_one(told: Told) -> None:
    for offset in (40, 40, 50, 50):
        told.batch(*answer("a", p0=offset), listed=("a",))

    (row,) = told.store.rows("partition_lag", ["recent_commits", "commit_timestamp", "lag_at_commit"])
    assert [one["committed_offset"] for one in row["recent_commits"]] == [40, 50]
    assert (row["commit_timestamp"], row["lag_at_commit"]) == (None, None)


def test_time_of_a_commit_from_a_record_is_unknown_once_its_coordinator_tells_of_it(told: Told) -> None:
    columns = ["committed_offset", "commit_timestamp", "lag_at_commit"]
    record = {
        "row_kind": "commit",
        "group_id": "a",
        "committed_offset": 40,
        "commit_timestamp_ms": NOW_MS + 500,
    }
    told.batch(listed=())
    told.batch(record, listed=())
    (read,) = told.store.rows("partition_lag", columns)
    assert (read["lag_at_commit"], read["commit_timestamp"] is None) == (60, False)

    told.batch(*answer("a", p0=40), listed=("a",))

    # The group may have repeated the commit since, so neither belongs to the newest commit any more.
    (asked,) = told.store.rows("partition_lag", columns)
    assert asked == {"committed_offset": 40, "commit_timestamp": None, "lag_at_commit": None}


def test_group_without_an_answer_keeps_its_rows_and_says_why_until_it_has_one(told: Told) -> None:
    told.batch(*answer("a", p0=40), *answer("b", p0=1), listed=("a", "b"))

    told.batch(*silent("a"), *answer("b", p0=2), listed=("a", "b"))
    assert told.lags() == {("a", 0): (40, 60, SILENT), ("b", 0): (2, 98, None)}
    (row, _) = sorted(told.store.rows("consumer_groups", GROUP), key=lambda row: row["group_id"])
    assert (row["state"], len(row["members"]), row["unconfirmed_reason"]) == ("Stable", 1, SILENT)

    told.batch(*answer("a", p0=41), *answer("b", p0=2), listed=("a", "b"))
    assert told.lags()["a", 0] == (41, 59, None)
    assert told.store.rows("consumer_groups", ["unconfirmed_reason"]) == [{"unconfirmed_reason": None}] * 2
    (row, _) = sorted(
        told.store.rows("partition_lag", ["group_id", "recent_commits"]), key=lambda row: row["group_id"]
    )
    assert [one["committed_offset"] for one in row["recent_commits"]] == [40, 41]


def test_mark_stays_while_nobody_is_asked_again(told: Told) -> None:
    told.batch(*answer("a", p0=40), listed=("a",))
    told.batch(*silent("a"), listed=("a",))

    told.batch(listed=("a",))

    assert told.lags() == {("a", 0): (40, 60, SILENT)}


def test_mark_of_a_partition_that_is_owned_and_has_no_commit_goes_with_the_next_answer(told: Told) -> None:
    owning = group("a", members=[member("m", assigned={"t": [1]})])
    answered = [{"row_kind": "asked", "group_id": "a"}, owning]
    told.batch(*answered, listed=("a",))
    told.batch(*silent("a"), listed=("a",))
    assert told.lags() == {("a", 1): (None, None, SILENT)}

    told.batch(*answered, listed=("a",))

    assert told.lags() == {("a", 1): (None, None, None)}


def test_group_whose_coordinator_does_not_tell_the_assignments_has_members_and_unknown_owners(
    told: Told,
) -> None:
    columns = ["member_id", "committed_offset"]
    owning = group("a", members=[member("m", assigned={"t": [0]})])
    commits = answer("a", p0=40)[2:]
    told.batch({"row_kind": "asked", "group_id": "a"}, owning, *commits, listed=("a",))
    assert told.store.rows("partition_lag", columns) == [{"member_id": "m", "committed_offset": 40}]

    untold = group("a", state="PreparingRebalance", members=[member("m", assigned=None, error="untold")])
    told.batch({"row_kind": "asked", "group_id": "a"}, untold, *commits, listed=("a",))

    assert told.store.rows("partition_lag", columns) == [{"member_id": None, "committed_offset": 40}]
    (row,) = told.store.rows("consumer_groups", ["members", "state"])
    assert [(one["member_id"], one["assigned"]) for one in row["members"]] == [("m", None)]


def test_group_that_never_answered_is_listed_with_the_reason(told: Told) -> None:
    told.batch(*silent("a"), listed=("a",))

    (row,) = told.store.rows("consumer_groups", ["group_id", "members", "unconfirmed_reason"])
    assert row == {"group_id": "a", "members": None, "unconfirmed_reason": SILENT}
    assert told.lags() == {}


def test_group_that_is_not_listed_goes_when_its_coordinator_has_denied_it_twice(told: Told) -> None:
    told.batch(*answer("a", p0=40), *answer("b", p0=1), listed=("a", "b"))
    told.coordinators.dead = {"a"}

    told.batch(*answer("b", p0=1), listed=("b",))
    assert told.lags()["a", 0][:2] == (40, 60)
    assert told.lags()["a", 0][2].startswith("no broker lists the group any more")

    told.batch(*answer("b", p0=1), listed=("b",))
    assert told.lags().keys() == {("b", 0)}
    assert told.values("consumer_groups", "group_id") == ["b"]
    assert [
        row["why"] for row in told.store.rows("group_history", ["group_id", "why"]) if row["group_id"] == "a"
    ].count("gone") == 1


def test_group_that_is_not_listed_stays_while_its_coordinator_does_not_deny_it(told: Told) -> None:
    told.batch(*answer("a", p0=40), listed=("a",))

    for _ in range(3):
        told.batch(listed=())

    assert told.lags()["a", 0][0] == 40
    assert told.coordinators.asked[-1] == {"a"}


def test_group_stays_and_nobody_is_asked_about_it_while_a_broker_has_not_listed_its_groups(
    told: Told,
) -> None:
    told.batch(*answer("a", p0=40), listed=("a",))
    told.coordinators.dead = {"a"}

    for _ in range(3):
        told.batch(listed=(), error="1 broker(s) did not list their groups: timed out")

    assert told.lags()["a", 0] == (40, 60, "1 broker(s) did not list their groups: timed out")
    assert told.coordinators.asked == []


def test_batch_that_runs_again_asks_nobody_and_leaves_commits_as_they_are(told: Told) -> None:
    told.batch(*answer("a", p0=40), listed=("a",))
    told.coordinators.dead = {"a"}
    told.restart()

    told.run(written={"topic_offsets"})

    assert told.lags() == {("a", 0): (40, 60, None)}
    assert told.coordinators.asked == []


def test_commit_in_a_topic_of_which_no_broker_speaks_stays_in_doubt_until_it_is_named_again(
    told: Told,
) -> None:
    hidden = {"row_kind": "commit", "group_id": "a", "topic": "hidden", "committed_offset": 7} | UNRECORDED

    def hidden_row() -> tuple[Any, ...]:
        columns = ["topic", "committed_offset", "confirmed", "unconfirmed_reason", "provisional"]
        rows = {row.pop("topic"): tuple(row.values()) for row in told.store.rows("partition_lag", columns)}
        assert rows["t"] == (40, True, None, False)
        return rows["hidden"]

    told.batch(*answer("a", p0=40), hidden, listed=("a",))
    assert hidden_row()[:3] == (7, True, None)

    told.batch(*answer("a", p0=40), listed=("a",))
    assert hidden_row() == (7, False, UNNAMED, True)
    # Nobody was asked.
    told.batch(listed=("a",))
    assert hidden_row() == (7, False, UNNAMED, True)

    told.batch(*answer("a", p0=40), hidden, listed=("a",))
    assert hidden_row()[:3] == (7, True, None)


def test_commit_in_doubt_goes_when_the_brokers_speak_of_its_partition_again(told: Told) -> None:
    told.batch(*answer("a", p0=40, p1=50), listed=("a",))
    lost = {"row_kind": "log_offset", "partition": 1, "error": "LEADER_NOT_AVAILABLE"}
    told.run(
        {"row_kind": "group_listing"}, {"row_kind": "listed", "group_id": "a"}, *answer("a", p0=40), lost
    )
    assert told.lags()["a", 1][0::2] == (50, UNNAMED)

    told.batch(*answer("a", p0=40), listed=("a",))

    assert told.lags().keys() == {("a", 0)}


def test_group_that_nobody_wants_any_more_goes_at_once(told: Told) -> None:
    told.batch(*answer("a", p0=40), *answer("b", p0=1), listed=("a", "b"))
    told.driver = idle_driver(
        store=told.store,
        config=Config(source=SourceConfig(offsets="admin", groups_exclude=("a",))),
        ghosts=told.driver.services.ghosts,
    )

    told.batch(*answer("b", p0=1), listed=("b",))

    assert told.lags().keys() == {("b", 0)}


def test_commit_in_a_topic_that_nobody_wants_any_more_goes_with_the_first_answer_of_its_group(
    told: Told,
) -> None:
    other = {"row_kind": "commit", "group_id": "a", "topic": "u", "committed_offset": 7} | UNRECORDED
    told.batch(*answer("a", p0=40), other, listed=("a",))
    told.driver = idle_driver(
        store=told.store,
        config=Config(source=SourceConfig(offsets="admin", topics_exclude=("u",))),
        ghosts=told.driver.services.ghosts,
    )

    told.batch(*silent("a"), listed=("a",))
    assert told.values("partition_lag", "topic") == ["t", "u"]

    told.batch(*answer("a", p0=40), listed=("a",))
    assert told.values("partition_lag", "topic") == ["t"]


def test_groups_that_are_told_alike_leave_no_row_of_history(told: Told) -> None:
    for _ in range(3):
        told.batch(*answer("a", p0=40), listed=("a",))
    assert [row["why"] for row in told.store.rows("group_history", ["group_id", "why"])] == ["first_seen"]

    two = [{"row_kind": "asked", "group_id": "a"}, group("a", members=[member("m"), member("n")])]
    told.batch(*two, listed=("a",))
    assert sorted(row["why"] for row in told.store.rows("group_history", ["group_id", "why"])) == [
        "first_seen",
        "joined",
    ]


def test_stamp_says_of_groups_with_the_commits_of_before_when_they_answered_and_since_when_so(
    told: Told,
) -> None:
    told.batch(*answer("a", p0=40), *answer("b", p0=1), *answer("c"), listed=("a", "b", "c"))
    assert told.asked() == {"c": (0, 0)}
    told.batch(*answer("a", p0=40), *answer("b", p0=2), *silent("c"), listed=("a", "b", "c"))
    assert told.asked() == {"a": (1, 1)}

    told.batch(*answer("a", p0=40), *answer("b", p0=2), *answer("c"), listed=("a", "b", "c"))
    assert told.asked() == {"a": (2, 1), "b": (2, 2), "c": (2, 2)}

    told.batch(*answer("b"), *answer("c", p1=7), listed=("a", "b", "c"))
    assert told.asked() == {"a": (2, 1)}

    told.batch(*answer("b"), listed=("b",))
    assert told.asked() == {"b": (4, 4)}


def test_group_is_alike_since_now_at_the_latest_where_the_clock_was_ahead_before(told: Told) -> None:
    told.batch(*answer("a"), listed=("a",), at_ms=NOW_MS + 600_000)
    assert told.asked() == {"a": (600, 600)}

    told.batch(*answer("a"), listed=("a",), at_ms=NOW_MS + 1000)
    assert told.asked() == {"a": (1, 1)}


def test_group_that_was_not_asked_for_is_neither_marked_nor_forgotten(told: Told) -> None:
    told.batch(*answer("a", p0=40), listed=("a",))
    told.batch(listed=("a",))

    assert told.lags() == {("a", 0): (40, 60, None)}
    assert told.values("consumer_groups", "group_id") == ["a"]
    assert told.coordinators.asked == []


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([], False),
        ([{"row_kind": "group_listing"}], True),
        ([{"row_kind": "group_listing", "error": "timed out"}], False),
        ([{"row_kind": "group_listing"}, *answer("a")], True),
        ([{"row_kind": "group_listing"}, *answer("a"), *silent("b")], False),
        ([{"row_kind": "group_listing"}, *silent("", UNASKABLE), *silent("b", UNREADABLE)], True),
        ([{"row_kind": "group_listing"}, *silent("b", f"{UNREADABLE}: UnicodeDecodeError: x")], True),
    ],
)
def test_batch_is_whole_when_all_are_listed_and_have_answered(rows: list[Row], expected: bool) -> None:
    driver = idle_driver(config=Config(source=SourceConfig(offsets="admin")), store=SimpleNamespace())

    assert is_whole(batch_of(driver, decoded=decoded_rows(*rows))) is expected


def test_group_whose_name_no_client_can_be_given_is_not_called_unlisted(told: Told) -> None:
    told.batch(*answer("a\0b", p0=40), listed=("a\0b",))

    told.batch(listed=("a",))

    assert told.lags()["a\0b", 0] == (40, 60, UNASKABLE)


def test_remark_quotes_the_name_of_a_group() -> None:
    asked = Asked(unanswered={"": UNASKABLE})

    assert remarks_of(asked)[0].endswith(f"newer ones; '': {UNASKABLE}")


def test_answer_with_the_offset_of_the_topic_before_counts_once_the_new_topic_is_known(told: Told) -> None:
    told.batch(*answer("a", p0=40), listed=("a",))
    found = []
    for _ in range(3):
        # The group has read the topic again, as far as it had read the one before.
        told.batch(*answer("a", p0=40), listed=("a",), topic="other")
        (row,) = told.store.rows("partition_lag", ["lag", "commit_topic_id"])
        found.append((row["lag"], row["commit_topic_id"]))

    assert found == [(None, "id"), (60, "other"), (60, "other")]


def test_stored_offset_of_the_topic_before_does_not_count_without_an_answer(told: Told) -> None:
    told.batch(*answer("a", p0=40), listed=("a",))
    for _ in range(3):
        told.batch(*silent("a"), listed=("a",), topic="other")

    assert told.store.rows("partition_lag", ["lag", "commit_topic_id"]) == [
        {"lag": None, "commit_topic_id": "id"}
    ]

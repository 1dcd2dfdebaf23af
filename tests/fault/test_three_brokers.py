"""Three brokers under traffic, disturbed one way after the other, and every version of the lag table judged.

Producers and groups go past the proxies, so that logs grow and commits are made while the job cannot see them. What
the table said at any time is held against what the brokers said of themselves at the time that the row names.
"""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.support.brokers.broker import OFFSETS_TOPIC, produce
from tests.support.brokers.broker_truth import EVERY_S, BrokerTruth, true_within
from tests.support.brokers.cluster import (
    ProxiedCluster,
    create_replicated_topics,
    elect_preferred,
    in_sync,
    proxied_cluster,
)
from tests.support.brokers.inject import offsets_partition
from tests.support.brokers.steady_groups import SteadyGroups
from tests.support.job.job import Row, eager_plan, job_config, running
from tests.support.job.table_watch import Seen, TableWatch, is_old
from tests.support.waiting import wait_until

pytestmark = pytest.mark.timeout(3600)
log = logging.getLogger(__name__)

_HOLD_S = 20.0
_FROZEN_S = 120.0
"""How long a disturbance lasts; a broker that is frozen longer than any time-out is what operators meet."""
TRIGGER_S, TIMEOUT_S = 1, 5
WANTED_S = 3 * TRIGGER_S + 15
"""Within which all is right again, and the greatest age of healthy rows, on a machine that does nothing else."""
LIMIT_S = 4 * WANTED_S
"""The same on one that does."""
SLACK_S = TRIGGER_S + 1.0
_FAILING = 2
_MOVED = "leaders moved"
_RECORDS_PER_S = 8

_SINGLE, _COPIED, _QUIET, _HOME = "single", "copied", "quiet", "home"
_COPIES = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
_DATA = {_SINGLE: [[1], [2], [3]], _COPIED: _COPIES, _QUIET: [[1], [2], [3]], _HOME: [[1], [1], [1]]}
_INTERNAL = {name: [[1]] for name in ("lagwise.assignments", "lagwise.acks", "lagwise.commands")}
_OFFSETS = {1: [[1], [2], [3], [1]], 3: [[1, 2, 3], [2, 3, 1], [3, 1, 2], [1, 3, 2]]}
"""Brokers of each partition of the offsets topic, by number of copies."""


def _group_in(prefix: str, partition: int) -> str:
    return next(name for i in range(1000) if offsets_partition(name := f"{prefix}-{i}") == partition)


ON_FAILING, ON_3, ON_1 = _group_in("busy", 1), _group_in("busy", 2), _group_in("home", 3)
_BUSY = {ON_FAILING: (_SINGLE, _COPIED), ON_3: (_SINGLE, _COPIED), ON_1: (_HOME,)}
_RESTING = {_group_in("resting", partition): (_QUIET,) for partition in range(3)}
_GROUPS = {**_BUSY, **_RESTING}
_ROWS = sum(3 * len(topics) for topics in _GROUPS.values())
_QUIET_END, _QUIET_COMMIT = 50, 20


class Disturbance(NamedTuple):
    """One that is over; times in s since the epoch."""

    name: str
    begun: float
    """From when on it held for certain."""
    ended: float
    """Until when it did."""
    healed: float
    """From when on nothing was in the way any more."""
    final_after_s: float
    """How long after that all rows were final again."""
    hides_broker: bool
    """Nobody could ask the failing broker."""


class Outages:
    """All disturbances, one after the other, and what was seen of them.

    Attributes:
        past: Those that are over, oldest first.
    """

    def __init__(self, proxied: ProxiedCluster, copies: int, root: Path) -> None:
        self.copies = copies
        self.past: list[Disturbance] = []
        self.decisions: list[Row] = []
        self._proxied = proxied
        self._internal = proxied.cluster.internal_servers
        self._node = proxied.cluster.node(_FAILING)
        config = job_config(
            proxied.cluster.bootstrap_servers,
            root,
            plan=eager_plan(dry_run=False, max_staleness_s=3600, valid_for_s=10),
        )
        self.truth = BrokerTruth(self._internal, {name: len(of) for name, of in _DATA.items()}, _GROUPS)
        self.watch = TableWatch(config)
        traffic = SteadyGroups(
            self._internal,
            topics={_SINGLE: 3, _COPIED: 3, _HOME: 3},
            groups=_BUSY,
            records_per_s=_RECORDS_PER_S,
        )
        with ExitStack() as stack:
            for one in (traffic, self.truth):
                stack.enter_context(one)
            self.job = stack.enter_context(running(config, rests=False))
            stack.enter_context(self.watch)
            self._wait_until_final(time.time())
            self._disturb()
            self.decisions = self.job.rows("recommendations")
            seen_at = time.time() + EVERY_S
            wait_until(lambda: self.truth.is_known_since(seen_at), what="the truth of the last rows")

    def _disturb(self) -> None:
        proxy, node = self._proxied.proxies[_FAILING], self._node
        controller = self._proxied.cluster.controllers[0]
        self._hold("frozen", node.pause, node.resume, hides_broker=True, hold_s=_FROZEN_S)
        self._lead_as_before()
        self._hold("black hole", proxy.black_hole, proxy.forward, hides_broker=True)
        self._hold("killed", node.kill, node.start, hides_broker=True)
        self._hold(_MOVED, self._lead_as_before, lambda: None, hides_broker=False)
        self._hold("no controller", controller.stop, controller.start, hides_broker=False)

    def _hold(
        self,
        name: str,
        begin: Callable[[], object],
        end: Callable[[], object],
        *,
        hides_broker: bool,
        hold_s: float = _HOLD_S,
    ) -> None:
        begin()
        begun = time.time()
        self.job.wait(
            lambda: time.time() > begun + hold_s and self.watch.since(begun), what=f"the end of: {name}"
        )
        ended = time.time()
        end()
        healed = time.time()
        after_s = self._wait_until_final(healed)
        self.past.append(Disturbance(name, begun, ended, healed, after_s, hides_broker))
        log.info("offsets on %d: %s: final %.1f s after its end", self.copies, name, after_s)

    def _wait_until_final(self, since: float) -> float:
        """Wait for a batch of a later time with all rows final; how long after that time it was there."""

        def final() -> list[Seen]:
            assert self.watch.failure is None, self.watch.failure
            return [one for one in self.watch.since(since) if one.is_final and len(one.rows) == _ROWS]

        self.job.wait(final, what="all rows final")
        return final()[0].at - since

    def _lead_as_before(self) -> None:
        """All copies in sync, and the first of each leading."""
        for topic in (_COPIED, OFFSETS_TOPIC):
            wait_until(
                lambda t=topic: (
                    set(map(len, in_sync(self._internal, t).values())) == {3 if t == _COPIED else self.copies}
                ),
                what=f"all copies of {topic} in sync",
                within_s=120,
            )
            elect_preferred(self._internal, topic)

    def depends_on_failing(self, row: Row) -> bool:
        """Whether the broker leads the row's partition, or that of its group's commits, when nothing is moved."""
        leads_log = _DATA[row["topic"]][row["partition"]][0] == _FAILING
        return leads_log or _OFFSETS[self.copies][row["offsets_partition"]][0] == _FAILING

    def shown_during(self, one: Disturbance) -> list[Seen]:
        """What was asked and written while nobody could ask the broker; nothing if somebody could."""
        if not one.hides_broker:
            return []
        return [seen for seen in self.watch.since(one.begun) if seen.at < one.ended]

    def greatest_age_of_healthy_rows(self, during: Disturbance) -> float:
        """Just before the next version was there, in s."""
        ages = [0.0]
        for shown, after in zip(self.watch.seen, self.watch.seen[1:], strict=False):
            if after.at < during.begun or shown.at > during.healed:
                continue
            healthy = [r for r in shown.rows if not (during.hides_broker and self.depends_on_failing(r))]
            assert not any(row["provisional"] for row in healthy)
            oldest = min(min(row["log_observed_at"], row["updated_at"]) for row in healthy).timestamp()
            ages.append(after.at - oldest)
        return max(ages)


@pytest.fixture(scope="module", params=[1, 3])
def outages(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outages]:
    copies: int = request.param
    with proxied_cluster() as proxied:
        internal = proxied.cluster.internal_servers
        offsets = {OFFSETS_TOPIC: _OFFSETS[copies], **_INTERNAL}
        create_replicated_topics(internal, offsets, cleanup_policy="compact")
        create_replicated_topics(internal, _DATA)
        produce(internal, _QUIET, dict.fromkeys(range(3), _QUIET_END))
        for group in _RESTING:
            _commit(internal, group)
        yield Outages(proxied, copies, tmp_path_factory.mktemp("three") / "tables")


def _commit(bootstrap: str, group: str) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "log_level": 0})
    offsets = [TopicPartition(_QUIET, partition, _QUIET_COMMIT) for partition in range(3)]
    try:
        consumer.commit(offsets=offsets, asynchronous=False)
    finally:
        consumer.close()


def test_every_figure_is_true_as_of_the_time_that_its_row_names(outages: Outages) -> None:
    wrong = [
        (row["group_id"], row["topic"], row["partition"], why, row)
        for seen in outages.watch.seen
        for row in seen.rows
        for why in _why_wrong(outages.truth, seen, row)
    ]

    assert wrong == []
    assert len(outages.watch.seen) >= 2 * len(outages.past)


def _why_wrong(truth: BrokerTruth, seen: Seen, row: Row) -> Iterator[str]:
    group, topic, partition = row["group_id"], row["topic"], row["partition"]
    end, committed = row["log_end_offset"], row["committed_offset"]
    if end is not None:
        asked = row["log_observed_at"].timestamp()
        ends = true_within(truth.ends[topic, partition], asked - SLACK_S, asked + SLACK_S)
        if not ends.holds(end):
            yield f"log end {end} is not in {ends}"
    if committed is not None:
        known = true_within(truth.commits[group, topic, partition], seen.updated_at - SLACK_S, seen.at)
        # A row that is marked shows an old commit, and never one that is yet to come.
        if committed > known.greatest or (committed < known.least and not row["provisional"]):
            yield f"commit {committed} is not in {known}"
    if end is not None and committed is not None:
        right = max(0, end - max(committed, row["log_start_offset"]))
        if row["lag"] != right:
            yield f"lag {row['lag']} is not {right}"


def test_rows_that_nobody_could_ask_for_are_marked(outages: Outages) -> None:
    for one in (one for one in outages.past if one.hides_broker):
        shown = outages.shown_during(one)
        assert shown, one
        for row in (row for seen in shown for row in seen.rows):
            if row["topic"] in {_SINGLE, _QUIET} and row["partition"] == _FAILING - 1:
                assert row["log_observed_at"].timestamp() < one.begun + SLACK_S, (one, row)
                assert is_old(row), (one, row)
            if outages.copies == 1 and row["offsets_partition"] == _FAILING - 1:
                assert row["provisional"], (one, row)


def test_no_plan_is_published_while_commits_are_unknown(outages: Outages) -> None:
    unknown = {
        (row["group_id"], row["updated_at"])
        for seen in outages.watch.seen
        for row in seen.rows
        if row["provisional"]
    }
    published = [row for row in outages.decisions if row["decision"] == "publish"]

    assert [row for row in published if (row["group_id"], row["created_at"]) in unknown] == []
    assert {row["group_id"] for row in published} == set(_BUSY)


def test_no_plan_moves_a_partition_whose_log_end_is_old(outages: Outages) -> None:
    old = {
        (row["group_id"], row["updated_at"], row["topic"], row["partition"])
        for seen in outages.watch.seen
        for row in seen.rows
        if is_old(row)
    }
    # Of these partitions only the failing broker knows anything.
    old |= {
        (group, seen.rows[0]["updated_at"], _SINGLE, _FAILING - 1)
        for one in outages.past
        for seen in outages.shown_during(one)
        for group in (ON_FAILING, ON_3)
    }
    moved = {
        (row["group_id"], row["created_at"], move["topic"], move["partition"])
        for row in outages.decisions
        if row["decision"] == "publish"
        for move in row["moves"]
    }

    assert moved
    assert moved & old == set()


def test_healthy_rows_go_on(outages: Outages) -> None:
    # A partition that gets another leader may be marked for one batch.
    ages = {one.name: outages.greatest_age_of_healthy_rows(one) for one in outages.past if one.name != _MOVED}
    log.info("offsets on %d: greatest age of healthy rows, s: %s", outages.copies, ages)

    assert max(ages.values()) < LIMIT_S, ages


def test_all_is_right_again_soon_after_each(outages: Outages) -> None:
    after = {one.name: one.final_after_s for one in outages.past}
    resting = [row for row in outages.watch.seen[-1].rows if row["group_id"] in _RESTING]

    assert max(after.values()) < LIMIT_S, after
    assert {row["lag"] for row in resting} == {_QUIET_END - _QUIET_COMMIT}
    assert outages.watch.seen[-1].is_final


def test_job_went_on_by_itself(outages: Outages) -> None:
    assert outages.job.failure is None
    assert not [line for line in outages.job.messages if "the query failed" in line]

"""Evaluates the groups whose turn it is, and stores their decisions."""

import logging
import math
import time

import pyarrow as pa

from pipeline.clock import now_ms
from pipeline.planning import step as plan
from pipeline.planning.rows import kept, turns
from pipeline.run.batch import clock
from pipeline.run.batch.intake import Settled
from pipeline.run.batch.plans.deciding import decide_all
from pipeline.run.batch.plans.late import connect
from pipeline.run.batch.plans.shared_members import shared_members

log = logging.getLogger(__name__)

_GROUPS_AT_A_TIME = 200
"""For each second of the trigger: two cores need a quarter of it for them when a fifth is searched for a plan."""


def make_plans(batch: Settled) -> bool:
    """Evaluate the groups if that is due, and store the decisions; return whether there are any.

    Groups most in need come first; the rest follow in the next batches if there is no time. A group that took a plan
    and has rebalanced since, or that has a new order of an operator, does not wait.
    """
    if "plan_state" in batch.held:
        return True
    memory, is_due = batch.driver.memory, _is_plan_due(batch)
    groups = _turns(batch, is_due=is_due)
    if not (is_due or groups):
        return False
    decided, memory.waiting = _decided(batch, groups)
    _store(batch, decided)
    if is_due:
        memory.evaluated_at_ms, memory.evaluated_at_s = batch.stamp.at_ms, time.monotonic()
    if memory.waiting:
        log.info(
            "there are more groups than lagwise can evaluate between two batches; those least behind wait",
            extra={"decided": len(groups) - len(memory.waiting), "waiting": len(memory.waiting)},
        )
    return True


def _turns(batch: Settled, *, is_due: bool) -> tuple[str, ...]:
    """The groups to decide about now, in the order of their turns; all of them when an evaluation begins."""
    urgent, waiting = _urgent(batch), batch.driver.memory.waiting
    if is_due:
        store = batch.services.store
        lags = store.arrow("partition_lag", list(turns.NEED_COLUMNS))
        members = store.arrow("consumer_groups", ["group_id"])
        names = {*lags["group_id"].unique().to_pylist(), *members["group_id"].to_pylist()}
        waiting = turns.most_in_need_first(names, lags)
    return tuple(dict.fromkeys((*urgent, *waiting)))


def _decided(batch: Settled, groups: tuple[str, ...]) -> tuple[pa.Table, tuple[str, ...]]:
    """What is decided in this batch, and the groups that wait for the next one."""
    services, settings = batch.services, _settings(batch, groups)

    def decide(only: tuple[str, ...]) -> pa.Table:
        return decide_all(batch.driver, settings, only=only)

    interval_s = services.config.trigger.interval_s
    tables, left = turns.decide_in_turn(
        groups,
        decide,
        at_a_time=_GROUPS_AT_A_TIME * interval_s,
        # The other half is for the rest of the batch.
        for_s=math.inf if services.is_once else interval_s / 2,
        clock_s=time.monotonic,
    )
    return pa.concat_tables([plan.DECIDED_ARROW.empty_table(), *tables]), left


def _settings(batch: Settled, groups: tuple[str, ...]) -> plan.PlanSettings:
    services, memory = batch.services, batch.driver.memory
    acks_of, held_acks = services.filters.control_topics.acks_of, batch.stamp.held_acks
    return plan.PlanSettings(
        cluster=services.cluster,
        config=services.config.plan,
        half_life_ms=services.config.rates.half_life_s * 1000,
        max_record_bytes=services.configs.max_record_bytes,
        batch_interval_s=services.config.trigger.interval_s,
        at_ms=batch.stamp.at_ms,
        # What a batch that runs again decides anew was never sent.
        now_ms=max(now_ms(), batch.stamp.at_ms),
        batch_id=batch.stamp.batch_id,
        provisional_reason=batch.stamp.reason,
        behind=batch.stamp.behind,
        # With a clock that was ahead an epoch must not be, too: what is withdrawn goes on from the newest one.
        least_epoch=0 if batch.stamp.is_clock_behind else batch.stamp.at_ms // 1000,
        # The topic may have been read only now.
        held=batch.stamp.held
        or connect(services, memory)
        or clock.trouble(now_ms(), batch.stamp.at_ms, memory),
        held_groups={one: why for one in groups if (why := held_acks.get(acks_of(one))) is not None},
        migration=services.migration(),
        mistakable=shared_members(services.store, services.config.plan),
    )


def _store(batch: Settled, decided: pa.Table) -> None:
    """Write down what was decided, and with it whether it is to be recorded; the rest is taken from there."""
    store, cluster = batch.services.store, batch.services.cluster
    keep_days = batch.services.config.history.keep_days
    rates = kept.member_rates(decided, cluster=cluster)
    batch.write("member_rates", kept.merged(store.arrow("member_rates"), rates, keep_days=keep_days))
    before = store.arrow("plan_state")
    newest = kept.newest_decisions(before, decided, cluster=cluster)
    rows = kept.merged(before, newest, keep_days=keep_days)
    batch.write("plan_state", rows)
    batch.driver.memory.keep_only(rows["group_id"].to_pylist())


def _urgent(batch: Settled) -> tuple[str, ...]:
    """Groups to decide about before the others' turn."""
    memory, urgent = batch.driver.memory, set[str]()
    if batch.services.is_once:
        return ()
    if batch.read.summary.orders:
        # Whatever is behind or held: a withdrawal needs no complete state, and nothing else is published without.
        urgent |= set(batch.read.decoded.kind("orders")["group_id"].to_pylist())
    is_complete = not batch.stamp.behind and batch.stamp.held is None
    if is_complete and batch.read.summary.group_records and memory.states:
        seen = (
            batch.read.decoded.kind("group")
            .select(["group_id", "generation", "position"])
            .sort_by("position")
        )
        urgent |= memory.rebalanced({row["group_id"]: row["generation"] for row in seen.to_pylist()})
    return tuple(sorted(urgent))


def _is_plan_due(batch: Settled) -> bool:
    services, stamp = batch.services, batch.stamp
    if batch.driver.memory.waiting:
        return False
    if services.is_once:
        # Acks and orders are read in pieces, and no plan is made before the last one.
        return not (stamp.behind or batch.intake.left or batch.is_replay)
    config = services.config
    interval_ms = clock.due_after_ms(config.plan.interval_s, batch_interval_s=config.trigger.interval_s)
    return batch.driver.memory.is_evaluation_due(stamp.at_ms, interval_ms=interval_ms, now_s=time.monotonic())

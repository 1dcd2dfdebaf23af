"""Rules for who reads the control topic: which record is the plan, and which records are none."""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from assignor.protocol import control
from assignor.protocol.control import ControlRecord
from tests.conformance.trial import Rule, Trial
from tests.support.followers.follow_plans import key_of

CONTROL = "records.md, the control topic"
# Room for the plans of the rules behind it.
_NEARLY_THE_LAST_EPOCH = 2**53 - 2**20


def stays(
    change: Callable[[ControlRecord], ControlRecord], *, refused: bool = False
) -> Callable[[Trial], None]:
    """A check that a plan which fits, but for this change, moves nothing."""

    def check(trial: Trial) -> None:
        trial.ignored(change(trial.draft()), refused=refused)

    return check


def _expired(record: ControlRecord) -> ControlRecord:
    now_ms = round(time.time() * 1000)
    return replace(record, created_at_ms=now_ms - 120_000, valid_until_ms=now_ms - 60_000)


def _of_another_protocol(trial: Trial) -> None:
    for protocol in ("consumer", "of a later version"):
        trial.ignored(replace(trial.draft(), group_protocol=protocol))


def _behind_another_protocol(trial: Trial) -> None:
    record, before, so_far = trial.draft(), trial.held(), len(trial.group.all_acks())
    trial.group.put(replace(record, group_protocol="consumer"))
    trial.group.put(record)
    trial.not_followed(record.epoch, before, so_far)
    trial.apply()


def _damaged(trial: Trial) -> None:
    record = trial.draft()
    for topic in (trial.group.control, trial.group.acks):
        trial.group.put_raw(
            topic, key_of(record), b'{"schema":1,"v":1,"kind":"accepted","cluster":', record.epoch
        )
        trial.group.put_raw(topic, b"\xff\xfe", b"\x00", record.epoch)
    trial.apply()


def _withdrawn(trial: Trial) -> None:
    record, before, so_far = trial.draft(), trial.held(), len(trial.group.all_acks())
    trial.group.withdraw(record)
    trial.group.put(record)
    trial.not_followed(record.epoch, before, so_far)
    trial.apply()


def _aborted(trial: Trial) -> None:
    record, before, so_far = trial.draft(), trial.held(), len(trial.group.all_acks())
    trial.group.put_aborted(record)
    trial.not_followed(record.epoch, before, so_far)
    trial.apply()


def _starts_later(trial: Trial) -> None:
    """One member is replaced; a plan that is older than the newest comes behind it again."""
    members = trial.group.alive()
    generation, _, _ = trial.group.base(len(members))
    older = trial.draft()
    trial.apply()
    trial.group.leave(members[0])
    trial.start()
    trial.group.base(len(members), after=generation)
    trial.ignored(replace(trial.draft(), epoch=older.epoch))


def _has_large_epochs(trial: Trial) -> None:
    for epoch in (2**31, _NEARLY_THE_LAST_EPOCH):
        trial.group.skip_to(epoch)
        trial.apply()


def _reads(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[Trial], None]:
    """A check that a plan which fits is applied in these words."""

    def check(trial: Trial) -> None:
        record = trial.draft()
        document = change(json.loads(control.encode(record)))
        trial.group.put_written(record, json.dumps(document).encode())
        trial.applied(record)

    return check


def _of_later_version(document: dict[str, Any]) -> dict[str, Any]:
    added = {"added": {"by": ["a", 2.5, None, {"later": True}]}}
    document["members"] = {name: {**one, **added} for name, one in document["members"].items()}
    document["moves"] = [{**one, **added} for one in document["moves"]]
    document["base"] |= added
    del document["unassigned"]
    return {**added, **document}


READING = (
    Rule(number=f"{CONTROL}, 3", sentence="Follow nothing past valid_until.", check=stays(_expired)),
    Rule(
        number=f"{CONTROL}, 3",
        sentence="Follow no dry_run.",
        check=stays(lambda record: replace(record, dry_run=True)),
    ),
    Rule(
        number=f"{CONTROL}, 3",
        sentence="Follow no record whose group_protocol is not classic.",
        check=_of_another_protocol,
    ),
    Rule(
        number=f"{CONTROL}, 2",
        sentence="A record for another group_protocol is held, too: a plan behind it whose epoch is not larger changes nothing.",
        check=_behind_another_protocol,
    ),
    Rule(
        number=f"{CONTROL}, 2",
        sentence="A record whose epoch is not larger changes nothing.",
        check=stays(lambda record: replace(record, epoch=1)),
    ),
    Rule(
        number=f"{CONTROL}, 2",
        sentence="A plan that comes after its withdrawal, with an epoch that is not larger, changes nothing.",
        check=_withdrawn,
    ),
    Rule(
        number=f"{CONTROL}, 2",
        sentence="Records of another group are not yours.",
        check=stays(lambda record: replace(record, group=f"{record.group}-2")),
    ),
    Rule(
        number=f"{CONTROL}, 2",
        sentence="Records of another cluster are not yours.",
        check=stays(lambda record: replace(record, cluster="elsewhere")),
    ),
    Rule(
        number="records.md",
        sentence="Ignore a damaged record; it is never a reason to stop.",
        check=_damaged,
    ),
    Rule(
        number="records.md",
        sentence="Ignore fields that you do not know, as deep as they are; unassigned may be absent.",
        check=_reads(_of_later_version),
    ),
    Rule(
        number="records.md",
        sentence="A larger schema adds fields, and is read like this one.",
        check=_reads(lambda document: document | {"schema": 2}),
    ),
    Rule(
        number=f"{CONTROL}, 1",
        sentence="Read committed records only: a plan in a transaction that was aborted is none.",
        check=_aborted,
    ),
    Rule(
        number=f"{CONTROL}, 1",
        sentence="Who starts reads the topic from its beginning, and so knows the largest epoch.",
        check=_starts_later,
    ),
    Rule(
        number=f"{CONTROL}, epoch",
        sentence="An epoch is a number up to 2^53: those of this time, those beyond 2^31, and the last ones.",
        check=_has_large_epochs,
    ),
)

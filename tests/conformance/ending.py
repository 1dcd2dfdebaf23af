"""Rules that are judged last: they look back on everything that the group has done, and end it."""

import math

from confluent_kafka import Consumer, TopicPartition

from assignor.errors import DecodeError
from assignor.protocol import acks as ack_records
from tests.conformance.group import STOP_WITHIN_S
from tests.conformance.topics import messages
from tests.conformance.trial import BrokenRuleError, Rule, Trial
from tests.support.brokers.commits import set_back
from tests.support.waiting import wait_until


def _none_lost(trial: Trial) -> None:
    group = trial.group
    try:
        group.drain()
    except AssertionError:
        missing = group.missing()
        raise BrokenRuleError(
            f"{len(missing)} records were not processed, the first is {missing[0]}"
        ) from None


def _one_owner(trial: Trial) -> None:
    stopped = {line["who"] for line in trial.group.lines() if line["what"] == "stopped"}
    for one, other in trial.group.overlaps():
        silent = one.end == math.inf and one.who in stopped
        raise BrokenRuleError(
            f"{one.who} and {other.who} read partition {one.place} at one time, in generations "
            f"{one.generation} and {other.generation}"
            + (f"; {one.who} printed stopped, and did not print revoked before it" if silent else "")
        )


def _no_strays(trial: Trial) -> None:
    held = set[tuple[str, int]]()
    for line in trial.group.lines():
        places = {(line["who"], place) for place in line.get("places", ())}
        if line["what"] == "gained":
            held |= places
        elif line["what"] in ("revoked", "lost"):
            held -= places
        elif line["what"] == "record" and (line["who"], line["place"]) not in held:
            raise BrokenRuleError(
                f"{line['who']} processed offset {line['offset']} of partition {line['place']}, which it did not read"
            )


def _none_set_back(trial: Trial) -> None:
    for partition, before, after in set_back(trial.group.bootstrap, trial.group.group):
        raise BrokenRuleError(f"the commit of partition {partition} went from {before} back to {after}")


def _acks_are_sound(trial: Trial) -> None:
    for message in messages(trial.group.bootstrap, trial.group.acks):
        key, value = message.key() or b"", message.value() or b""
        try:
            ack = ack_records.decode(key, value)
        except DecodeError as error:
            # Keys of plans are the kit's own damage.
            if b'"kind"' in key:
                raise BrokenRuleError(f"not an acknowledgement: {key!r}, {value!r}: {error}") from None
            continue
        if key != ack_records.encode_key(ack):
            raise BrokenRuleError(f"the key has other bytes: {key!r}, not {ack_records.encode_key(ack)!r}")
        if ack.cluster != trial.group.cluster:
            raise BrokenRuleError(f"names the cluster {ack.cluster!r}, not {trial.group.cluster!r}")
    strangers = {ack.member for ack in trial.group.all_acks()} - _members(trial)
    if strangers:
        raise BrokenRuleError(f"acknowledgements of members that never joined: {sorted(strangers)}")


def _members(trial: Trial) -> set[str]:
    return {str(line["member"]) for line in trial.group.lines() if line["what"] == "joined"}


def _stops(trial: Trial) -> None:
    group = trial.group
    running = group.alive()
    group.tell_to_stop()
    wait_until(lambda: not group.alive(), what=f"{running} stopped", within_s=STOP_WITHIN_S)
    group.fail_if_dead()
    last = {line["who"]: line["what"] for line in group.lines()}
    silent = [who for who in running if last.get(who) != "stopped"]
    if silent:
        raise BrokenRuleError(f"printed something else than stopped in the end: {silent}")
    consumer = Consumer({"bootstrap.servers": group.bootstrap, "group.id": group.group})
    try:
        places = [TopicPartition(group.topic, number) for number in range(group.partitions)]
        committed = [place.offset for place in consumer.committed(places, timeout=10)]
    finally:
        consumer.close()
    behind = _next_offsets(trial)
    if dict(enumerate(committed)) != behind:
        raise BrokenRuleError(f"committed {committed} in the end, and processed up to {behind}")


def _next_offsets(trial: Trial) -> dict[int, int]:
    """Offset behind the last record that was processed, of each partition."""
    newest = dict.fromkeys(range(trial.group.partitions), -1)
    for line in trial.group.lines():
        if line["what"] == "record":
            newest[line["place"]] = max(newest[line["place"]], line["offset"])
    return {place: offset + 1 for place, offset in newest.items()}


ENDING = (
    Rule(number="following.md, how it works", sentence="No record is lost.", check=_none_lost, is_last=True),
    Rule(
        number="following.md, how it works",
        sentence="No partition has two owners.",
        check=_one_owner,
        is_last=True,
    ),
    Rule(
        number="conformance.md, lines",
        sentence="A member processes records of what it has gained, and of nothing else.",
        check=_no_strays,
        is_last=True,
    ),
    Rule(
        number="following.md, how it works",
        sentence="No commit goes behind one before it.",
        check=_none_set_back,
        is_last=True,
    ),
    Rule(
        number="records.md, the acks topic",
        sentence="Acknowledgements have the fields of their kind, by their member id, under the exact key.",
        check=_acks_are_sound,
        is_last=True,
    ),
    Rule(
        number="conformance.md, stop",
        sentence="Told to stop, a member commits what it has processed, leaves and ends with status 0.",
        check=_stops,
        is_last=True,
    ),
)

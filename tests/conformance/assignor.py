"""Rules for members of a group whose leader applies plans in a rebalance."""

import time
from dataclasses import replace

from assignor.protocol.acks import Void
from assignor.protocol.control import ControlRecord
from tests.conformance.common import HARM, JOINS
from tests.conformance.ending import ENDING
from tests.conformance.reading import READING, stays
from tests.conformance.trial import APPLIED_WITHIN_S, MEMBERS, QUIET_S, BrokenRuleError, Rule, Trial

PAGE = "following-assignors.md"
LEADER = f"{PAGE}, what the leader does"


def _applies(trial: Trial) -> None:
    record = trial.apply()
    for ack in trial.acks(record.epoch):
        if ack.generation <= record.base_generation:
            raise BrokenRuleError(
                f"{type(ack).__name__} names generation {ack.generation}, not the one that was assigned by the plan"
            )


def _despite_migration(trial: Trial) -> None:
    trial.apply(replace(trial.draft(), migration="possible"))


def _stays_for_what_it_has(trial: Trial) -> None:
    generation, _, _ = trial.group.base(MEMBERS)
    held = trial.held()
    _joins_no_more(trial, trial.group.draft(generation, held, held), generation)


def _joins_once(trial: Trial) -> None:
    record = trial.apply()
    generation, _, _ = trial.group.base(MEMBERS)
    _joins_no_more(trial, record, generation)


def _joins_no_more(trial: Trial, record: ControlRecord, generation: int) -> None:
    trial.group.put(record)
    deadline = time.monotonic() + QUIET_S
    while time.monotonic() < deadline:
        time.sleep(0.1)
        joined = [line for line in trial.group.lines() if line["what"] == "joined"]
        if any(line["generation"] > generation for line in joined):
            raise BrokenRuleError(f"the group has rebalanced for plan {record.epoch}")
    trial.apply()


def _of_strangers(record: ControlRecord) -> ControlRecord:
    return replace(record, members={f"not-{name}": one for name, one in record.members.items()}, moves=())


def _without_a_place(record: ControlRecord) -> ControlRecord:
    name = min(record.members)
    less = {topic: numbers[1:] for topic, numbers in record.members[name].target.items()}
    return replace(record, members={**record.members, name: replace(record.members[name], target=less)})


def _of_the_future(record: ControlRecord) -> ControlRecord:
    return replace(record, base_generation=record.base_generation + 1000)


def _of_other_owners(record: ControlRecord) -> ControlRecord:
    """In its base and its target each partition is another's than it is; they differ, so that it moves something."""
    names = sorted(record.members)
    held = {name: record.members[name].base for name in names}
    turned = {name: (names[place - 1], names[place - 2]) for place, name in enumerate(names)}
    return replace(
        record,
        members={
            name: replace(record.members[name], base=held[base], target=held[target])
            for name, (base, target) in turned.items()
        },
        moves=(),
    )


def _void_when_it_fits_no_more(trial: Trial) -> None:
    record = trial.apply()
    generation, ids, _ = trial.group.base(MEMBERS)
    trial.group.killed(min(ids))
    trial.group.base(MEMBERS - 1, after=generation)
    try:
        trial.group.wait_for_acks(Void, record.epoch, MEMBERS - 1, within_s=APPLIED_WITHIN_S)
    except AssertionError as error:
        raise BrokenRuleError(f"{error}; acknowledged: {trial.kinds(record.epoch)}") from None
    trial.start()
    trial.group.base(MEMBERS, after=generation + 1)
    trial.apply()


RULES = (
    JOINS,
    Rule(
        number=LEADER,
        sentence="A plan that fits is applied in a rebalance, and acknowledged by all with the generation after it.",
        check=_applies,
        is_basis=True,
    ),
    Rule(number=PAGE, sentence="migration in the plan is ignored.", check=_despite_migration),
    Rule(
        number=f"{PAGE}, who rejoins",
        sentence="Nobody rejoins for a plan that leaves every member what it has.",
        check=_stays_for_what_it_has,
    ),
    Rule(
        number=f"{PAGE}, who rejoins",
        sentence="A plan that was applied, and is read again, brings no rebalance.",
        check=_joins_once,
    ),
    *READING,
    Rule(
        number=f"{LEADER}, 1",
        sentence="The member ids are those of the plan; each member writes refused otherwise.",
        check=stays(_of_strangers, refused=True),
    ),
    Rule(
        number=f"{LEADER}, 2",
        sentence="Every partition has exactly one place in the plan.",
        check=stays(_without_a_place, refused=True),
    ),
    Rule(
        number=f"{LEADER}, 3",
        sentence="Some member claims a generation that is not older than the plan's base.",
        check=stays(_of_the_future),
    ),
    Rule(
        number=f"{LEADER}, 4",
        sentence="Each partition is with its owner in the base or in the target.",
        check=stays(_of_other_owners, refused=True),
    ),
    Rule(
        number=f"{PAGE}, use",
        sentence="Members write void when a plan that was applied fits no more.",
        check=_void_when_it_fits_no_more,
        is_slow=True,
    ),
    *HARM,
    *ENDING,
)

"""Followers that break the contract, one thing each, and the rule of the conformance kit that has to name it."""

from typing import NamedTuple

from tests.conformance.assignor import RULES as ASSIGNOR
from tests.conformance.hand_over import RULES as HAND_OVER
from tests.conformance.trial import Rule
from tests.support.conformance.conformance_runs import only

APPLIES = "A plan that fits is accepted, handed over and applied, in the generation that there is."
COMMITS = "The old owner commits the offset of a release with its mark, and the new one commits it again."
EPOCHS = "An epoch is a number up to 2^53: those of this time, those beyond 2^31, and the last ones."
HELD_TOO = "A record for another group_protocol is held, too: a plan behind it whose epoch is not larger changes nothing."
ABORTED = "Read committed records only: a plan in a transaction that was aborted is none."


class Mutant(NamedTuple):
    """One of them."""

    names: tuple[str, ...]
    """Of `tests.conformance.followers.wrong`; some deviations need two changes to be seen at all."""
    caught_by: str
    """Sentence of the rule."""
    besides: tuple[str, ...] = ()
    """Parts of the sentences of rules that may fail with it, or that have to be judged before."""
    follower: tuple[str, ...] = ("confluent",)

    needs_broker: bool = False
    """A group in memory cannot show it."""

    @property
    def title(self) -> str:
        return f"{self.follower[0]} {self.names[0]}"

    def rules(self) -> list[Rule]:
        """Those that it is judged by."""
        every = HAND_OVER if self.follower[0] == "confluent" else ASSIGNOR
        return only(every, self.caught_by, *self.besides)


_PLUG_IN = ("kafka_python", "cooperative")

MUTANTS = (
    # What it reads.
    Mutant(("any-epoch", "decides-anew"), "A record whose epoch is not larger changes nothing."),
    Mutant(("any-group",), "Records of another group are not yours."),
    Mutant(("any-cluster",), "Records of another cluster are not yours."),
    Mutant(("follows-dry-run",), "Follow no dry_run."),
    Mutant(("any-group-protocol",), "Follow no record whose group_protocol is not classic."),
    Mutant(("passes-over-other-protocols",), HELD_TOO),
    Mutant(("never-expires",), "Follow nothing past valid_until."),
    Mutant(
        ("forgets-withdrawals",),
        "A plan that comes after its withdrawal, with an epoch that is not larger, changes nothing.",
    ),
    Mutant(
        ("ignores-withdrawals",),
        "A plan that is withdrawn before it has begun moves nothing, and who had accepted it writes void.",
    ),
    Mutant(("ignores-withdrawals-without-epoch",), "A withdrawal without an epoch counts."),
    Mutant(("ends-on-damage",), "Ignore a damaged record; it is never a reason to stop.", needs_broker=True),
    Mutant(
        ("known-fields-only",),
        "Ignore fields that you do not know, as deep as they are; unassigned may be absent.",
    ),
    Mutant(("known-schema-only",), "A larger schema adds fields, and is read like this one."),
    Mutant(("reads-aborted",), ABORTED),
    Mutant(
        ("starts-at-the-end",),
        "Who starts reads the topic from its beginning, and so knows the largest epoch.",
        needs_broker=True,
    ),
    Mutant(("epochs-of-32-bits",), EPOCHS),
    # Which plans it follows.
    Mutant(("any-generation",), "A plan of an earlier generation that is still valid is refused."),
    Mutant(("does-not-wait",), "A plan for a later generation waits."),
    Mutant(("any-member",), "A plan without your member id is refused, once for each epoch and generation."),
    Mutant(("any-base",), "A plan with another base than yours is refused."),
    Mutant(("any-target",), "A plan whose target is no permutation of its base is refused."),
    Mutant(
        ("any-migration",),
        "A plan whose migration is not disabled is refused, with a why that begins so.",
    ),
    # What it says.
    Mutant(("never-applied",), APPLIES),
    Mutant(("other-epoch",), APPLIES),
    Mutant(("other-generation",), APPLIES),
    Mutant(
        ("other-member",),
        "Acknowledgements have the fields of their kind, by their member id, under the exact key.",
        needs_broker=True,
    ),
    Mutant(
        ("refuses-twice",), "A plan without your member id is refused, once for each epoch and generation."
    ),
    Mutant(("applied-for-refused",), "A plan with another base than yours is refused."),
    Mutant(
        ("applied-at-once",),
        "Applied is written when the whole target is held and all that was given is taken.",
    ),
    # How it hands over, and what it reads.
    Mutant(("keeps-reading",), "No partition has two owners.", (APPLIES,), needs_broker=True),
    Mutant(
        ("impatient",),
        "Give nothing away until everybody whom the moves name has accepted; then all of it.",
        needs_broker=True,
    ),
    Mutant(
        ("believes-records",),
        "A release that no commit of the old owner bears out moves nothing.",
        needs_broker=True,
    ),
    Mutant(("gives-uncommitted",), COMMITS, needs_broker=True),
    Mutant(("takes-unproven",), COMMITS, needs_broker=True),
    Mutant(
        ("ignores-losses",),
        "Who joins another generation has given up, or lost, all that it read in the one before.",
        ("slept beyond its session",),
        needs_broker=True,
    ),
    # In a group whose leader assigns plans.
    Mutant(("reads-aborted",), ABORTED, follower=_PLUG_IN, needs_broker=True),
    Mutant(
        ("rejoins-without-moves",),
        "Nobody rejoins for a plan that leaves every member what it has.",
        follower=_PLUG_IN,
        needs_broker=True,
    ),
    Mutant(
        ("rejoins-again",),
        "A plan that was applied, and is read again, brings no rebalance.",
        follower=_PLUG_IN,
        needs_broker=True,
    ),
    Mutant(
        ("silent",),
        "No partition has two owners.",
        ("A plan that fits", "migration in the plan"),
        follower=_PLUG_IN,
        needs_broker=True,
    ),
)

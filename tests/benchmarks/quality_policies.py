"""What is compared over time: a strategy, when it is asked, and how its answer is applied."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from assignor.evaluation.drain.time import drain_s
from assignor.model.arrays import Int32s
from assignor.model.group import Group
from assignor.strategies.catalogue import RebalanceProtocol
from assignor.strategies.registry import STRATEGIES

EVERY_S = 60
_BAND = 0.9
_FLOOR_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A way to run a group."""

    name: str
    strategy: str
    options: Mapping[str, object] = field(default_factory=dict)
    every_minute: bool = False
    """Is the strategy asked every minute, or only when members or partitions come and go."""
    eager: bool = False
    """Does everybody stop when anything moves, or only what moves."""
    band: bool = False
    """Is the answer taken only if the slowest member needs over 20 s and would be a tenth sooner through."""
    knows_rates: bool = True
    """Does it see arrival rates, or lag alone."""

    def target(self, group: Group) -> Int32s:
        """Member of each partition from now on."""
        wanted = STRATEGIES[self.strategy].assign(group, self.options).member
        return group.owner if self.band and not _is_worth_it(group, wanted) else wanted


def _is_worth_it(group: Group, wanted: Int32s) -> bool:
    if (group.owner < 0).any():
        return True
    before, after = drain_s(group, group.owner), drain_s(group, wanted)
    assert before is not None
    assert after is not None
    return before > _FLOOR_S and after < _BAND * before


# K = P, lambda = 0, floor = 0: whatever brings the group down soonest, at any price.
FREE: Mapping[str, object] = {
    "max_moves": 10_000_000,
    "move_cost_s": 0.0,
    "floor_s": 0.0,
    "min_gain": 0.0,
    "move_pause_s": 0.0,
}

KIP_169_EVERY_MINUTE = Policy(
    name="lag-aware every minute, eager (KIP-169)", strategy="lag-aware", every_minute=True, eager=True
)
LAG_STICKY = Policy(name="lag-sticky", strategy="lag-sticky", every_minute=True)


def main_policies() -> list[Policy]:
    """Every strategy of the registry the way it is meant to run, and KIP-169 every minute."""
    by_count = [
        Policy(name=name, strategy=name, eager=entry.protocols[-1] is RebalanceProtocol.EAGER)
        for name, entry in STRATEGIES.items()
        if not entry.reads_lag
    ]
    by_lag = [
        Policy(name="lag-aware at rebalances, eager", strategy="lag-aware", eager=True),
        KIP_169_EVERY_MINUTE,
        Policy(
            name="lag-aware scope=group every minute",
            strategy="lag-aware",
            options={"scope": "group"},
            every_minute=True,
        ),
        LAG_STICKY,
    ]
    return [policy for policy in (*by_count, *by_lag) if policy.strategy in STRATEGIES]


def ablations() -> list[Policy]:
    """KIP-169 every minute with one thing of lag-sticky at a time, and lag-sticky without one at a time."""
    policies = [
        KIP_169_EVERY_MINUTE,
        Policy(name="cooperative alone: KIP-169", strategy="lag-aware", every_minute=True),
        Policy(
            name="band alone: KIP-169, eager", strategy="lag-aware", every_minute=True, eager=True, band=True
        ),
        Policy(
            name="weight alone: drain time, eager",
            strategy="lag-sticky",
            options=FREE,
            every_minute=True,
            eager=True,
        ),
        Policy(
            name="lag-sticky without band",
            strategy="lag-sticky",
            options={"floor_s": 0.0, "min_gain": 0.0, "move_cost_s": 0.0},
            every_minute=True,
        ),
        Policy(name="lag-sticky without rates", strategy="lag-sticky", every_minute=True, knows_rates=False),
        Policy(
            name="lag-sticky, eager",
            strategy="lag-sticky",
            options={"group_pause_s": 4.0},
            every_minute=True,
            eager=True,
        ),
        Policy(
            name="lag-sticky counts=even",
            strategy="lag-sticky",
            options={"counts": "even"},
            every_minute=True,
        ),
        LAG_STICKY,
    ]
    return [policy for policy in policies if policy.strategy in STRATEGIES]

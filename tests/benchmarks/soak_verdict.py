"""First third against last third, and whether that is flat.

A quantity is flat when its median in the last third exceeds that of the first third by no more than a tenth, or
by no more than what it moves by anyway: the distance from the smallest to the largest value within the first
third. Between two rounds of maintenance files pile up and are removed again, and that sawtooth is not growth.
The tables that are kept for days, `lag_history`, `recommendations` and `group_history`, grow by design until `history.keep_days`
is over; their bytes are shown and not judged, their files are.
"""

import statistics
from typing import Any

from tests.benchmarks.results import table, where

_TOLERANCE = 0.1
_WARM_UP_SHARE = 0.1
_GROWS_BY_DESIGN = ("lag_history data bytes", "recommendations data bytes", "group_history data bytes")
_NOT_QUANTITIES = ("at_s", "batches")


def compare(samples: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """For each quantity its medians, and 'flat', 'not flat' or 'by design'.

    Args:
        samples: Of the whole run; the first tenth is left out.
    """
    counted = samples[round(len(samples) * _WARM_UP_SHARE) :]
    third = len(counted) // 3
    if not third:
        return {}
    names = [name for name in counted[0] if name not in _NOT_QUANTITIES]
    return {name: _compare(name, counted[:third], counted[-third:]) for name in names}


def markdown(run: dict[str, Any]) -> str:
    """The comparison as Markdown."""
    comparison = run["comparison"]
    rows = [[name, c["first third"], c["last third"], c["verdict"]] for name, c in comparison.items()]
    growing = [name for name, c in comparison.items() if c["verdict"] == "not flat"]
    batches = sum(sample["batches"] for sample in run["samples"])
    verdict = f"not flat: {', '.join(growing)}" if growing else "flat"
    return "\n\n".join(
        [
            where(run),
            f"{run['seconds']:,} s, {batches:,} batches, one every {run['trigger_s']} s. Verdict: {verdict}.",
            table(["median of", "first third", "last third", "verdict"], rows),
            "",
        ]
    )


def _compare(name: str, first: list[dict[str, Any]], last: list[dict[str, Any]]) -> dict[str, Any]:
    before = [sample[name] for sample in first if sample[name] is not None]
    after = [sample[name] for sample in last if sample[name] is not None]
    if not before or not after:
        # A third without a single batch is the worst that a stream can do.
        return {"first third": None, "last third": None, "verdict": "not flat"}
    begun, ended = statistics.median(before), statistics.median(after)
    allowed = max(_TOLERANCE * begun, max(before) - min(before))
    verdict = "flat" if ended - begun <= allowed else "not flat"
    if name in _GROWS_BY_DESIGN:
        verdict = "by design"
    return {"first third": round(begun, 2), "last third": round(ended, 2), "verdict": verdict}

"""The parts of a run by name; importable, since each of them runs in a process of its own."""

import time
from typing import Any

from tests.benchmarks import (
    assignors,
    broker_assignor,
    broker_load,
    cluster,
    decode,
    disk,
    follow,
    follow_helps,
    follow_helps_java,
    follow_mixed,
    follow_price,
    idle,
    log_offsets,
    plans,
    poke,
    quality,
    serve,
    start,
    steady,
    upkeep,
)
from tests.benchmarks.worlds import bench as worlds

PARTS = {
    "assignors": assignors.measure,
    "broker-assignor": broker_assignor.measure,
    "broker-load": broker_load.measure,
    "cluster": cluster.measure,
    "decode": decode.measure,
    "disk": disk.measure,
    "follow": follow.measure,
    "poke": poke.measure,
    "quality": quality.measure,
    "follow-helps": follow_helps.measure,
    "follow-helps-30s": follow_helps.measure_seldom,
    "follow-helps-java": follow_helps_java.measure,
    "follow-mixed": follow_mixed.measure,
    "follow-price": follow_price.measure,
    "idle": idle.measure,
    "start": start.measure,
    "log-offsets": log_offsets.measure,
    "serve": serve.measure,
    "upkeep": upkeep.measure,
    "worlds": worlds.measure,
    **{name: size.measure for name, size in (plans.SIZES | steady.SIZES).items()},
}


def measure(name: str, *, quick: bool) -> dict[str, Any]:
    """The figures of one part."""
    return PARTS[name](say, quick=quick)


def say(text: str) -> None:
    """Progress, with the time."""
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)  # noqa: T201 - progress of a command

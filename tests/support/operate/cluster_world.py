"""Tables of one cluster among several."""

from pathlib import Path

from pipeline import clock
from pipeline.tables.stamp import Stamp
from tests.support.operate.table_world import NOON, World


def cluster_world(root: Path, name: str, *, lag: int) -> World:
    """Tables of a cluster with a group `billing`, and one that only this cluster has."""
    world, own = World(root), {"cluster": name}
    world.write("planner_state", {**own, "owner": "host/7/1", "term": 3, "acquired_at": NOON})
    world.write(
        "partition_lag",
        {**own, "lag": lag, "lag_seconds": 1.5},
        {**own, "group_id": f"of-{name}", "lag": 1},
        stamp=Stamp(batch_id=7, at_ms=clock.now_ms()),
    )
    world.write("consumer_groups", {**own, "state": "Stable", "generation": 4})
    world.complete()
    return world

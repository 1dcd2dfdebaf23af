"""Following helps in Java, too: the same race, with members in Java under the assignor of the jar.

The group that does not follow has that assignor as well, and no plans: Kafka's sticky assigns in both. Traffic of 30 s
is there when the consumers start, and goes on; the member with the hot partitions is half as fast as the others.
"""

from collections.abc import Callable
from typing import Any

from pipeline.operate.demo.processes.java import make_jar
from pipeline.operate.demo.scenario import Group, Scenario, Topic, with_control
from tests.benchmarks import follow_helps

_PAIR = Scenario(
    topics=(Topic(name="invoices", partitions=60, records_per_s=600, skew=0.8, burst_s=30),),
    groups=with_control(
        Group(
            group_id="invoicing",
            topics=("invoices",),
            speeds=(240, 450, 450, 450),
            properties={"partition.assignment.strategy": "lagwise.follow.LagwiseAssignor"},
            follows=True,
            is_java=True,
            note="in Java, the member with the hot partitions is half as fast",
        )
    ),
)


def measure(say: Callable[[str], None], *, quick: bool) -> dict[str, Any]:
    """As `follow_helps`.

    Raises:
        MissingDependencyError: No JDK.
    """
    make_jar()
    return follow_helps.measure_pairs(_PAIR, say, quick=quick)

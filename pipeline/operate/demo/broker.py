"""The demo's Kafka, with lagwise's assignor for KIP-848 groups if its jar could be made."""

from pathlib import Path

from pipeline.local.embedded.broker import EmbeddedBroker
from pipeline.operate.demo.scenario import CLUSTER

_PROPERTIES = {
    # Each of them takes a task of each batch.
    "offsets.topic.num.partitions": "4",
    # Members that start at the same time join one generation instead of one each.
    "group.initial.rebalance.delay.ms": "1000",
}
_WITH_ASSIGNOR = {
    # Groups that ask for none get the first.
    "group.consumer.assignors": "uniform,range,lagwise.broker.PlanAssignor",
    "lagwise.cluster": CLUSTER,
}
_READS_PLANS_FROM = "lagwise.bootstrap.servers"


def demo_broker(data_dir: Path, *, assignor: Path | None) -> EmbeddedBroker:
    """The broker, not started; with the assignor if that is its jar, which then reads plans from the broker itself."""
    if assignor is None:
        return EmbeddedBroker(data_dir=data_dir, properties=_PROPERTIES)
    return EmbeddedBroker(
        data_dir=data_dir,
        properties={**_PROPERTIES, **_WITH_ASSIGNOR},
        own_address=(_READS_PLANS_FROM,),
        class_path=(assignor,),
    )

"""Source: what the driver learns of a batch from its rows: how far each log was read, and how much there was."""

from collections import Counter
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.kafka.positions import PartitionKey, Position


@dataclass(frozen=True, slots=True)
class Reached:
    """Position that the read of a span has reached."""

    position: Position
    error: str | None
    """Cause of a short read; None if the span was read whole, or as far as its leader vouches for."""


@dataclass(slots=True, kw_only=True)
class Summary:
    """Contents of a batch in figures."""

    reached: dict[PartitionKey, Reached] = field(default_factory=dict)
    """Position reached in each partition."""
    counts: dict[str, int] = field(default_factory=dict)
    """Records by kind; record types without use here by Kafka's name."""
    is_listed: bool = False
    """True if the batch asked the brokers for their topics."""
    listing_error: str | None = None
    brokers: int | None = None
    """Live brokers; None if they were not asked, or did not answer."""

    @property
    def group_records(self) -> int:
        """Group records and their tombstones."""
        return self.counts.get("group", 0)

    @property
    def acks(self) -> int:
        """Acknowledgements of followers."""
        return self.counts.get("ack", 0)

    @property
    def orders(self) -> int:
        """Orders of operators."""
        return self.counts.get("orders", 0)

    @property
    def quarantined(self) -> int:
        """Records that could not be read."""
        return self.counts.get("bad", 0)


SUMMARISED = ("count", "listing", "read")
"""Kinds of rows that `summarise` takes account of."""


def summarise(rows: pa.Table) -> Summary:
    """Summarise the decoded rows of a batch; rows of kinds outside `SUMMARISED` may be left out."""
    columns = [
        "row_kind",
        "kind",
        "count",
        "topic",
        "partition",
        "position",
        "leader_epoch",
        "error",
        "brokers",
    ]
    counts: Counter[str] = Counter()
    summary = Summary()
    told = rows.filter(pc.is_in(rows["row_kind"], value_set=pa.array(SUMMARISED)))
    for row in told.select(columns).to_pylist():
        if row["row_kind"] == "listing":
            summary.is_listed = True
            summary.listing_error = row["error"]
            summary.brokers = row["brokers"]
        elif row["row_kind"] == "read":
            reached = Reached(Position(row["position"], row["leader_epoch"]), row["error"])
            summary.reached[row["topic"], row["partition"]] = reached
        else:
            counts[row["kind"]] += row["count"]
    summary.counts = dict(sorted(counts.items()))
    return summary

"""The step of control messages: acknowledgements and orders."""

import pyarrow as pa

from pipeline.fold.control_messages import fold_acks, fold_orders
from pipeline.run.batch.intake import Settled


def store_control_messages(batch: Settled) -> None:
    """What followers acknowledge and operators order, when the batch has any of it or reads all of it again."""
    store, summary = batch.services.store, batch.read.summary
    control = batch.services.config.control
    if _has_news(batch, "acks", control.acks_topic, summary.acks):
        folded = fold_acks(
            _stored_before(batch, "acks", control.acks_topic),
            batch.read.decoded.kind("ack"),
            store.arrow("consumer_groups"),
            at_ms=batch.stamp.at_ms,
        )
        batch.write_measured("acks", folded)
    if _has_news(batch, "orders", control.commands_topic, summary.orders):
        folded = fold_orders(
            _stored_before(batch, "orders", control.commands_topic), batch.read.decoded.kind("orders")
        )
        batch.write_measured("orders", folded)


def _has_news(batch: Settled, name: str, topic: str, records_read: int) -> bool:
    if name in batch.held:
        return False
    return records_read > 0 or (bool(batch.reread(topic)) and batch.services.store.has_rows(name))


def _stored_before(batch: Settled, name: str, topic: str) -> pa.Table:
    """The table that the topic goes into; nothing of it when the topic is read again from its start."""
    stored = batch.services.store.arrow(name)
    return stored.slice(0, 0) if batch.reread(topic) else stored

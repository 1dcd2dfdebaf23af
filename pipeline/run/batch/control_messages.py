"""The step of control messages: acknowledgements and orders."""

import pyarrow as pa

from pipeline.fold.control_messages import fold_acks, fold_orders
from pipeline.run.batch.writes import stamped, write_measured
from pipeline.run.driver import Batch


def store_control_messages(batch: Batch) -> None:
    """What followers acknowledge and operators order, when the batch has any of it or reads all of it again."""
    store, summary = batch.services.store, batch.summary
    control = batch.services.config.control
    if _has_news(batch, "acks", control.acks_topic, summary.acks):
        folded = fold_acks(
            _stored_before(batch, "acks", control.acks_topic),
            batch.decoded.kind("ack"),
            store.arrow("consumer_groups"),
            at_ms=batch.clock.at_ms,
        )
        write_measured(batch, "acks", stamped(batch, folded))
    if _has_news(batch, "orders", control.commands_topic, summary.orders):
        folded = fold_orders(
            _stored_before(batch, "orders", control.commands_topic), batch.decoded.kind("orders")
        )
        write_measured(batch, "orders", stamped(batch, folded))


def _has_news(batch: Batch, name: str, topic: str, records_read: int) -> bool:
    if name in batch.written:
        return False
    return records_read > 0 or (bool(batch.reread(topic)) and batch.services.store.has_rows(name))


def _stored_before(batch: Batch, name: str, topic: str) -> pa.Table:
    """The table that the topic goes into; nothing of it when the topic is read again from its start."""
    stored = batch.services.store.arrow(name)
    return stored.slice(0, 0) if batch.reread(topic) else stored

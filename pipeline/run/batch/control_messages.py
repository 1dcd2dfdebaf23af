"""The step of control messages: acknowledgements and orders."""

import pyarrow as pa

from pipeline.fold.control_messages import fold_acks, fold_orders
from pipeline.run.batch.intake import Settled


def store_control_messages(batch: Settled) -> None:
    """Store acknowledgements and orders if the batch has any, or reads all of them again."""
    store, summary, decoded = batch.services.store, batch.read.summary, batch.read.decoded
    control = batch.services.filters.control_topics
    reread = {topic for topic in control.every_acks if batch.reread(topic)}
    if _has_news(batch, "acks", summary.acks, is_reread=bool(reread)):
        folded = fold_acks(
            _acks_before(batch, reread),
            decoded.kind("ack"),
            store.arrow("consumer_groups"),
            at_ms=batch.stamp.at_ms,
        )
        batch.write_measured("acks", folded)
    is_reread = bool(batch.reread(control.commands))
    if _has_news(batch, "orders", summary.orders, is_reread=is_reread):
        stored = store.arrow("orders")
        folded = fold_orders(stored.slice(0, 0) if is_reread else stored, decoded.kind("orders"))
        batch.write_measured("orders", folded)


def _has_news(batch: Settled, name: str, records_read: int, *, is_reread: bool) -> bool:
    if name in batch.held:
        return False
    return records_read > 0 or (is_reread and batch.services.store.count(name) > 0)


def _acks_before(batch: Settled, reread: set[str]) -> pa.Table:
    """The stored acknowledgements, without those of groups whose topic is read again from its start."""
    stored = batch.services.store.arrow("acks")
    if not reread:
        return stored
    acks_of = batch.services.filters.control_topics.acks_of
    groups = stored["group_id"].to_pylist()
    return stored.filter(pa.array([acks_of(group_id) not in reread for group_id in groups], pa.bool_()))

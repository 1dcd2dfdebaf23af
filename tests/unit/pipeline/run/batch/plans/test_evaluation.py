"""What decisions are made from, apart from the tables."""

from dataclasses import replace
from types import SimpleNamespace

from pipeline.run.batch.plans import evaluation
from tests.support.job.batches import FILTERS, batch_of, idle_driver, stamp_of


def test_only_groups_whose_acks_topic_is_not_read_are_held() -> None:
    control = replace(FILTERS.control_topics, acks_by_prefix={"shop-": "shop.acks"})
    driver = idle_driver(
        filters=replace(FILTERS, control_topics=control),
        publisher=SimpleNamespace(unavailable=lambda _on_connected: None),
    )
    batch = batch_of(driver, stamp=stamp_of(held_acks={"shop.acks": "it has no leader"}))

    settings = evaluation._settings(batch, ("g", "shop-a"))

    assert settings.held_groups == {"shop-a": "it has no leader"}

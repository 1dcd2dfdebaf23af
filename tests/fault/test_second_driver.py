"""A newer driver that goes on from a checkpoint of its own takes the tables, and no table mixes the two.

With one checkpoint for both: `tests/integration/test_second_driver.py`.
"""

from pathlib import Path

from pipeline.local.embedded.broker import EmbeddedBroker
from tests.integration.test_second_driver import assert_newer_takes_over


def test_newer_driver_with_a_fresh_checkpoint_takes_the_tables(
    forged_broker: EmbeddedBroker, tmp_path: Path
) -> None:
    assert_newer_takes_over(
        forged_broker.bootstrap_servers, tmp_path, most_terms=2, checkpoint=str(tmp_path / "fresh")
    )

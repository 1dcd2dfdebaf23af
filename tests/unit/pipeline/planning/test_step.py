"""A group whose rows nobody foresaw."""

import pyarrow as pa

from pipeline.config.model import PlanConfig
from pipeline.planning.step import PlanSettings, _decide

SETTINGS = PlanSettings(
    cluster="local",
    config=PlanConfig(),
    max_record_bytes=1_000_000,
    at_ms=0,
    now_ms=0,
    batch_id=0,
    behind=(),
    provisional_reason=None,
)


def test_fault_in_one_group_is_its_reason_to_abstain_and_stops_nobody_else() -> None:
    decision = _decide({"group_id": "g"}, pa.table({}), SETTINGS)

    assert decision.decided == "abstain"
    assert "planning failed because of a fault in lagwise: KeyError" in (decision.reason or "")

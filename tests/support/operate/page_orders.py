"""Forms of the page as a browser sends them, and a plan that waits for an approval."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

from pipeline.planning.state import GroupState, to_json
from tests.support.operate.asgi import ask
from tests.support.operate.serving import Answer
from tests.support.operate.table_world import NOON, World

TOKEN = "correct horse battery"  # noqa: S105 - of the test
FROM = {"Host": "localhost:8000", "Origin": "http://localhost:8000", "Sec-Fetch-Site": "same-origin"}
FORM = "application/x-www-form-urlencoded"
BY_ANN = {"name": "ann", "reason": "INC-1", "token": TOKEN}
"""Fields that each form has."""


def sent(app: Any, path: str, fields: Mapping[str, str], **headers: str) -> Answer:
    """The answer to a form, with other headers than the page would send where they are given."""
    body = urlencode(fields).encode()
    return ask(app, path, method="POST", body=body, **{**FROM, "Content-Type": FORM, **headers})


def write_waiting(world: World, owner: str, taker: str, **more: Any) -> None:
    """A plan `3f2a-91bc` of group billing that waits: it moves one partition; more are columns of `plan_state`."""
    world.write("partition_lag", {"lag": 900, "member_id": owner})
    world.write(
        "plan_state",
        {
            "decision": "awaiting_approval",
            "target_hash": "3f2a",
            "base_hash": "91bc",
            "moves": [{"topic": "invoices", "partition": 0, "from": owner, "to": taker, "lag": 900}],
            "assignment": [(taker, [("invoices", "0")])],
            "awaiting_since": NOON,
            "valid_until": NOON + timedelta(minutes=10),
            "recorded_at": NOON,
            "state": to_json(GroupState()),
            **more,
        },
    )

"""Names of members and words of statuses: readable where they stand."""

from collections.abc import Callable

import pytest

from pipeline.lag.status import STATUS_NAMES
from pipeline.operate.statuses import STATUSES, WORST_FIRST
from tests.support.operate.read_html import Read
from tests.support.operate.serving import Answer
from tests.support.operate.table_world import NOON, World

Asking = Callable[..., Answer]


def test_reason_and_map_name_members_and_keep_their_ids_and_hosts(world: World, page: Asking) -> None:
    ids = [f"app-0d5c7e7a-3d7e-4c60-9d0f-5c1c2b6e{end}" for end in ("3f2a", "91bc")]
    members = [
        {"member_id": one, "client_id": "app", "client_host": f"/10.0.0.{at}", "assigned": []}
        for at, one in enumerate(ids)
    ]
    world.write("consumer_groups", {"members": members})
    world.write("partition_lag", {"lag": 3, "member_id": ids[1], "client_id": "app"})
    world.write(
        "plan_state", {"reason": f"member {ids[0]} stays", "recorded_at": NOON, "decision": "unchanged"}
    )

    html = page("/group?id=billing").text
    shown = Read(html)

    assert f'member <abbr title="{ids[0]}">app …3f2a</abbr> stays' in html
    assert [row[0] for row in shown.texts if row and row[0].startswith("app ")] == [
        "app …3f2a 10.0.0.0",
        "app …91bc 10.0.0.1",
        "app …3f2a",
        "app …91bc",
    ]
    titles = [attrs.get("title") for tag, attrs in shown.tags if tag == "span"]
    assert [titles.count(one) for one in ids] == [2, 2]
    assert all(f"<code>{one}</code>" in html for one in ids)


@pytest.mark.usefixtures("billing")
@pytest.mark.parametrize("path", ["/", "/group?id=billing"])
def test_statuses_are_explained_where_they_stand_and_in_a_legend(page: Asking, path: str) -> None:
    html = page(path).text

    assert set(STATUSES) == set(STATUS_NAMES) == set(WORST_FIRST)
    assert f'<span class="status bad" title="{STATUSES["STALL"].meaning}">STALL</span> 1' in html
    assert "<summary>What the statuses mean</summary>" in html
    assert all(f"<dd>{one.meaning}</dd>" in html for one in STATUSES.values())


@pytest.mark.parametrize(("known", "word"), [(True, "never"), (False, "unknown"), (None, "never or unknown")])
def test_time_to_drain_that_is_missing_is_never_or_unknown_as_the_tables_know(
    world: World, page: Asking, *, known: bool | None, word: str
) -> None:
    world.write("partition_lag", {"lag": 3})
    world.write(
        "plan_state",
        {"assignment": [("m", [("t", "0")])], "moves": [], "capacity_known": known, "recorded_at": NOON},
    )

    html = page("/group?id=billing").text

    spans = f'<span class="quiet">{word}</span>'
    assert f"{spans} as assigned, {spans} under the target, {spans} at best" in html
    assert f'data-head="Drains in, planned">{spans}<' in page("/").text

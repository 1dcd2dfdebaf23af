import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from pipeline.operate.demo.report import plot
from pipeline.operate.demo.scenario import PAIRED
from tests.support.operate.demo_views import timeline

_PLAIN = timeline(group_id="billing-plain", follows=False, drained_s=None, moves_at_s=())


def _written(folder: Path, *timelines: plot.GroupTimeline) -> str:
    plot.write(folder / "plot.html", timelines, PAIRED)
    return (folder / "plot.html").read_text(encoding="utf-8")


def _texts(page: str) -> list[str]:
    svg = ET.fromstring(page[page.index("<svg") : page.index("</svg>") + 6])  # noqa: S314 - our own
    return [one.text or "" for one in svg.iter("{http://www.w3.org/2000/svg}text")]


def test_picture_names_both_groups_the_moves_and_when_it_was_drained(tmp_path: Path) -> None:
    texts = _texts(_written(tmp_path, timeline(), _PLAIN))

    assert "billing (follows)" in texts
    assert "billing-plain (does not follow)" in texts
    assert "3 moved" in texts
    assert [text for text in texts if text.startswith("drained")] == ["drained after 60 s"]


@pytest.mark.parametrize(
    ("times_s", "expected"),
    [((), []), ((30.0,), ["1 moved"]), ((30.0, 39.0, 48.0, 90.0), ["3 moved", "1 moved"])],
    ids=["none", "one", "two-plans"],
)
def test_moves_that_follow_closely_are_named_together(
    times_s: tuple[float, ...], expected: list[str], tmp_path: Path
) -> None:
    texts = _texts(_written(tmp_path, timeline(moves_at_s=times_s), _PLAIN))

    assert [text for text in texts if text.endswith("moved")] == expected


def test_page_needs_nothing_from_elsewhere_and_is_small(tmp_path: Path) -> None:
    page = _written(tmp_path, timeline(), _PLAIN)

    assert not re.search(r"<(script|link|img|iframe)|@import|url\(", page.replace("url(#", ""))
    assert len(page) < 100_000


def test_table_has_every_group_and_the_picture_only_pairs(tmp_path: Path) -> None:
    page = _written(tmp_path, timeline(group_id="shipping"), timeline(group_id="search", follows=False))

    assert "<svg" not in page
    assert re.findall(r"<tr><td>([a-z-]+)</td>", page) == ["shipping", "search"]


def test_same_timelines_give_the_same_bytes(tmp_path: Path) -> None:
    assert _written(tmp_path, timeline(), _PLAIN) == _written(tmp_path, timeline(), _PLAIN)

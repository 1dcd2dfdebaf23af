"""The page refreshes itself, and its header gives an age only while it does."""

import os
import re
import signal

import pytest
from playwright.sync_api import Browser

from pipeline import clock
from pipeline.tables.stamp import Stamp
from tests.operate.browser import barriers
from tests.support.operate.fleet_world import fleet_world
from tests.support.operate.serving import serving

_FRESH, _STALE = re.compile(r"as of .* UTC, .* ago"), re.compile(r"as of .* UTC; not refreshed since")
"""Age in the header."""


def test_page_refreshes_by_itself_unless_somebody_uses_it(
    chromium: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    world = fleet_world(tmp_path_factory.mktemp("moving") / "tables", groups=2, partitions=1)

    def lag(records: int) -> None:
        world.replace(
            "partition_lag",
            {"group_id": "group-000", "lag": records, "lag_seconds": 1.0},
            stamp=Stamp(batch_id=records, at_ms=clock.now_ms()),
        )

    lag(111)
    with serving("--tables", str(world.root)) as running:
        page = chromium.new_page()
        page.goto(running.url)
        page.locator('td data[value="111"]').first.wait_for()
        lag(222)
        page.locator('td data[value="222"]').first.wait_for()

        page.get_by_label("Name contains").fill("group")
        lag(333)
        page.get_by_text("refresh waits while you use the page").wait_for()
        assert _STALE.search(page.locator("header .age").inner_text())
        assert page.get_by_label("Name contains").input_value() == "group"
        assert page.locator('td data[value="222"]').first.is_visible()
        assert barriers(page) == []

        page.get_by_label("Name contains").fill("")
        page.get_by_label("Name contains").blur()
        page.locator('td data[value="333"]').first.wait_for()
        assert _FRESH.search(page.locator("header .age").inner_text())
    page.get_by_text(_STALE).wait_for()


def test_header_gives_no_age_while_the_server_hangs_or_the_refresh_is_off(
    chromium: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    world = fleet_world(tmp_path_factory.mktemp("hanging") / "tables", groups=2, partitions=1)
    with serving("--tables", str(world.root)) as running:
        page = chromium.new_page()
        page.goto(running.url)
        page.get_by_text(_FRESH).wait_for()

        os.kill(running.process.pid, signal.SIGSTOP)
        try:
            page.get_by_text(_STALE).wait_for()
            page.get_by_text("refresh failed: ").wait_for()
        finally:
            os.kill(running.process.pid, signal.SIGCONT)
        page.get_by_text(_FRESH).wait_for()

        page.locator("header input").uncheck()
        page.get_by_text(_STALE).wait_for()

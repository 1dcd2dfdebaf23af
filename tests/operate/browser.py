"""A real Chromium: Debian's package, driven by Playwright; and axe-core, which looks for what shuts people out."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

_PACKAGES = ("chromium", "fonts-dejavu-core")
_RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa")
_AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")


def chromium() -> str:
    """The program; installed where it is missing and this user may."""
    found = shutil.which("chromium")
    if found is None:
        assert os.geteuid() == 0, f"Chromium is missing: apt-get install {' '.join(_PACKAGES)}"
        command = ["apt-get", "install", "--yes", "--no-install-recommends", *_PACKAGES]
        settings = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        # A fresh machine has no list of packages.
        subprocess.run(["apt-get", "update"], check=True, capture_output=True)
        subprocess.run(command, check=True, capture_output=True, env=settings)
        found = shutil.which("chromium")
    assert found is not None
    return found


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser without windows."""
    with sync_playwright() as playwright:
        # Its sandbox takes rights that a container does not give; it visits this machine alone.
        running = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        try:
            yield running
        finally:
            running.close()


def barriers(page: Page) -> Sequence[str]:
    """What breaks WCAG 2.2, level A or AA, on the page as it is shown: rule, and the elements."""
    page.evaluate(_AXE)
    found: dict[str, Any] = page.evaluate(
        "rules => axe.run(document, {runOnly: {type: 'tag', values: rules}})", list(_RULES)
    )
    assert found["passes"]
    return [f"{one['id']}: {[node['html'] for node in one['nodes'][:3]]}" for one in found["violations"]]

"""The pictures of the page in `deploy/docs`, taken of a demo while it runs: `python -m tests.operate.pictures`."""

import json
import signal
import tempfile
import time
from io import BytesIO
from pathlib import Path
from typing import NamedTuple, get_args

from PIL import Image
from playwright.sync_api import Browser

from tests.operate.browser import browser
from tests.operate.conftest import lines_until, started_demo
from tests.operate.test_browser import Theme
from tests.support.operate.serving import get
from tests.support.waiting import wait_until

_DOCS = Path(__file__).parents[2] / "deploy" / "docs"
_COLOURS, _MOST_BYTES = 128, 150_000
_RUNS_S = 900.0
"""By then the last hour has a curve, and plans have had their effect."""


class _Picture(NamedTuple):
    name: str
    path: str
    width: int
    height: int


_PICTURES = (
    _Picture("page-group", "/group?id=shipping", 1280, 1300),
    _Picture("page-groups", "/", 1280, 640),
    _Picture("page-narrow", "/group?id=shipping", 390, 1100),
)


def _is_fresh(url: str) -> bool:
    return json.loads(get(f"{url}/api/v1/health").text)["ready"] is True


def _take(chromium: Browser, url: str, picture: _Picture, theme: Theme) -> None:
    page = chromium.new_page(viewport={"width": picture.width, "height": picture.height}, color_scheme=theme)
    wait_until(lambda: _is_fresh(url), what="fresh figures")
    page.goto(f"{url}{picture.path}")
    with Image.open(BytesIO(page.screenshot())) as taken:
        few = taken.convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE)
    file = _DOCS / f"{picture.name}{'-dark' if theme == 'dark' else ''}.png"
    few.save(file, optimize=True)
    assert file.stat().st_size <= _MOST_BYTES, file
    page.close()


def _main() -> None:
    shows_s = time.monotonic() + _RUNS_S
    with tempfile.TemporaryDirectory() as place, started_demo(Path(place)) as demo:
        try:
            said = lines_until(demo, "shipping: publish")
            (url,) = (line.split()[1] for line in said if line.startswith("page: "))
            wait_until(lambda: time.monotonic() > shows_s, what="a curve to show", within_s=2 * _RUNS_S)
            with browser() as chromium:
                for picture in _PICTURES:
                    for theme in get_args(Theme):
                        _take(chromium, url, picture, theme)
        finally:
            demo.send_signal(signal.SIGINT)
            demo.communicate()


if __name__ == "__main__":
    _main()

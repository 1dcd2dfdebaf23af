"""The pictures of Spark's own pages in `deploy/docs`, of a job on a live broker: `python -m tests.operate.spark_pictures`."""

import tempfile
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser

from pipeline.local.embedded.config import free_port
from tests.operate.browser import browser
from tests.support.brokers.broker import create_offsets_topic, small_broker
from tests.support.brokers.traffic import Traffic
from tests.support.job.job import eager_plan, job_config, running

_DOCS = Path(__file__).parents[2] / "deploy" / "docs"
_BATCHES = 40
_WIDTH = 1280


def _take(chromium: Browser, url: str, name: str, *, height: int, link: str | None = None) -> None:
    page = chromium.new_page(viewport={"width": _WIDTH, "height": height})
    page.goto(url)
    if link is not None:
        page.locator(link).first.click()
    page.wait_for_load_state("networkidle")
    # Where this checkout lies is nobody's business.
    page.evaluate(
        "document.querySelectorAll('a').forEach(a => {"
        " if (a.textContent.includes('site-packages')) a.textContent = a.textContent.replace(/at .*site-packages/, 'at …') })"
    )
    with Image.open(BytesIO(page.screenshot())) as taken:
        taken.convert("RGB").quantize(128, dither=Image.Dither.NONE).save(
            _DOCS / f"{name}.png", optimize=True
        )
    page.close()


def _main() -> None:
    port = free_port()
    with tempfile.TemporaryDirectory() as folder, small_broker() as broker:
        bootstrap = broker.bootstrap_servers
        create_offsets_topic(bootstrap)
        config = job_config(bootstrap, Path(folder) / "tables", plan=eager_plan(dry_run=True))
        config = config.model_copy(update={"spark": {"spark.ui.enabled": "true", "spark.ui.port": str(port)}})
        with Traffic(bootstrap), running(config) as job:
            job.wait_for_batches(_BATCHES)
            with browser() as chromium:
                url = f"http://127.0.0.1:{port}"
                _take(chromium, f"{url}/jobs/", "spark-jobs", height=900)
                _take(
                    chromium,
                    f"{url}/StreamingQuery/",
                    "spark-streaming",
                    height=1000,
                    link="a[href*='statistics']",
                )


if __name__ == "__main__":
    _main()

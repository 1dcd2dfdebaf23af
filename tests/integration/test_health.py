"""A driver that is suspended, as by SIGSTOP, a hung host or a paused machine: who looks from outside sees it."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from typer.testing import CliRunner

from pipeline.local.embedded.broker import EmbeddedBroker
from pipeline.local.embedded.config import free_port
from pipeline.operate.cli.app import app
from tests.support.job.job import write_config
from tests.support.operate.prometheus_text import parse
from tests.support.operate.serving import get, serving
from tests.support.waiting import wait_until

TRIGGER_S = 5
LIMIT_S = 3 * TRIGGER_S
_LOOK_S = 2
"""For one look, on a machine that is busy."""


def test_suspended_driver_is_critical_within_three_triggers_until_it_goes_on(
    broker: EmbeddedBroker, tmp_path: Path
) -> None:
    file, port = tmp_path / "lagwise.toml", free_port()
    write_config(file, broker.bootstrap_servers, tmp_path / "tables")
    text = file.read_text().replace("[trigger]\ninterval_s = 1", f"[trigger]\ninterval_s = {TRIGGER_S}")
    file.write_text(f"{text}[health]\nport = {port}\n")
    own = f"http://127.0.0.1:{port}"
    with _driver(file) as driver, serving("--config", str(file)) as served:
        wait_until(lambda: _said(file)[0] == 0, what="a driver that is well", within_s=180)
        assert get(f"{own}/readyz").status == served.get("/readyz").status == 200
        assert parse(get(f"{own}/metrics").text).of("lagwise_driver_term")
        wait_until(
            lambda: any(parse(get(f"{own}/metrics").text).of("lagwise_source_rows").values()),
            what="what Spark says of a batch",
        )
        assert max(parse(get(f"{own}/metrics").text).of("lagwise_spark_phase_seconds").values()) > 0

        driver.send_signal(signal.SIGSTOP)
        stopped_at_s = time.monotonic()
        wait_until(lambda: _said(file)[0] == 2, what="a critical driver", within_s=LIMIT_S + 30)
        seen_after_s = time.monotonic() - stopped_at_s
        unready, alive = served.get("/readyz"), served.get("/healthz")
        figures = parse(served.get("/metrics").text)
        _, line = _said(file)

        driver.send_signal(signal.SIGCONT)
        wait_until(lambda: _said(file)[0] == 0, what="a driver that is well again", within_s=60)
        driver.send_signal(signal.SIGTERM)
        assert driver.wait(60) == 0

        assert _said(file, "--live")[0] == 2
    assert seen_after_s < LIMIT_S + _LOOK_S
    assert "no heartbeat" in line
    assert (unready.status, alive.status) == (503, 200)
    assert set(figures.of("lagwise_live").values()) == {0}


def _said(file: Path, *more: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["health", "--config", str(file), *more])
    return result.exit_code, result.stdout


@contextmanager
def _driver(file: Path) -> Iterator["subprocess.Popen[bytes]"]:
    code = "from pipeline.operate.cli.app import main; main()"
    with subprocess.Popen([sys.executable, "-c", code, "run", "--config", str(file)]) as process:
        try:
            yield process
        finally:
            process.kill()

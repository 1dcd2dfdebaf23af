"""A real Prometheus: Debian's package, unpacked and not installed, in a process of its own."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from pipeline.local.embedded.config import free_port
from tests.support.operate.monitoring import HOME
from tests.support.operate.prometheus_text import Series
from tests.support.operate.serving import get
from tests.support.waiting import wait_until

_PACKAGES = {"prometheus": "prometheus", "promtool": "prometheus", "amtool": "prometheus-alertmanager"}
"""Debian's, by program."""
_CONFIG = """
global: {{scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}}
rule_files: [{rules}]
scrape_configs:
"""
_JOB = """
- job_name: {job}
  static_configs: [{{targets: ["{target}"]}}]
"""


def installed(name: str) -> Path:
    """The program `prometheus`, `promtool` or `amtool`; fetched when it is not there."""
    package = _PACKAGES[name]
    home = Path(sys.prefix) / package
    program = home / "usr" / "bin" / name
    if not program.exists():
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir()
        _download(package, home)
        (file,) = home.glob(f"{package}_*.deb")
        subprocess.run(["dpkg", "-x", file, home], check=True)
    return program


def _download(package: str, home: Path) -> None:
    command = ["apt-get", "download", package]
    if subprocess.run(command, cwd=home, check=False, capture_output=True).returncode:
        # A fresh machine has no list of packages.
        subprocess.run(["apt-get", "update"], check=True, capture_output=True)
        subprocess.run(command, cwd=home, check=True, capture_output=True)


class Prometheus(NamedTuple):
    """One that scrapes lagwise every second."""

    url: str

    def query(self, text: str) -> list[dict[str, Any]]:
        """The instant vector."""
        found: list[dict[str, Any]] = self._answer(f"query?query={quote(text)}")["result"]
        return found

    def rules(self) -> list[dict[str, Any]]:
        """The alert rules, and how they are."""
        return [rule for group in self._answer("rules")["groups"] for rule in group["rules"]]

    def _answer(self, what: str) -> Any:
        answer = get(f"{self.url}/api/v1/{what}")
        assert answer.status == 200, answer.text
        return json.loads(answer.text)["data"]

    def series(self) -> dict[Series, float]:
        """What the newest scrape has brought, without the labels of the target."""
        found = {}
        for one in self.query('{job="lagwise",__name__!~"up|scrape_.*|ALERTS.*"}'):
            labels = {k: v for k, v in one["metric"].items() if k not in {"__name__", "job", "instance"}}
            found[one["metric"]["__name__"], frozenset(labels.items())] = float(one["value"][1])
        return found


@contextmanager
def prometheus(url: str, folder: Path, driver: str | None = None) -> Iterator[Prometheus]:
    """A Prometheus that has scraped what is served at `url` at least once.

    It knows the alert rules, keeps its data in `folder` and scrapes the port of a driver, too, where one is given.
    """
    jobs = {"lagwise": url, "lagwise-driver": driver}
    text = _CONFIG.format(rules=HOME / "alerts.yaml") + "".join(
        _JOB.format(job=job, target=target.removeprefix("http://")) for job, target in jobs.items() if target
    )
    with configured(text, folder) as running:
        yield running


@contextmanager
def configured(text: str, folder: Path) -> Iterator[Prometheus]:
    """A Prometheus with this configuration that has scraped all targets of job `lagwise` at least once."""
    address = f"127.0.0.1:{free_port()}"
    config = folder / "prometheus.yml"
    config.write_text(text)
    command = [
        installed("prometheus"),
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={address}",
    ]
    with (folder / "log").open("w") as log, subprocess.Popen(command, stderr=log) as process:
        running = Prometheus(f"http://{address}")
        try:
            wait_until(lambda: _has_scraped(running), what=f"a scrape, see {folder / 'log'}")
            yield running
        finally:
            process.terminate()


def _has_scraped(running: Prometheus) -> bool:
    try:
        return {one["value"][1] for one in running.query('up{job="lagwise"}')} == {"1"}
    except (OSError, AssertionError):
        # It does not listen yet, or reads its log of the last time.
        return False

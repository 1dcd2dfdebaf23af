"""Files of the demo, all of them below the working directory.

.lagwise/lagwise-demo.html   the plot of the newest demo, which stays

.lagwise/demo/lagwise.toml   its configuration, for the other commands
.lagwise/demo/demo.log       logs of the stream, Spark, Java and the Kafka clients
.lagwise/demo/tables/        the Delta tables and the stream's checkpoint
.lagwise/demo/broker/        the broker's data
.lagwise/demo/spark/         Spark's scratch space
"""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import ConfigError

ROOT = Path(".lagwise/demo")

TEMPLATE = Path(__file__).with_name("demo.toml")
"""Configuration of the demo, with the address of its broker to be filled in."""

_ADDRESS = "localhost:9092"


@dataclass(frozen=True, slots=True)
class Folder:
    """The demo's folder."""

    root: Path

    @property
    def broker(self) -> Path:
        """The broker's data."""
        return self.root / "broker"

    @property
    def tables(self) -> Path:
        """The Delta tables."""
        return self.root / "tables"

    @property
    def log(self) -> Path:
        """The log of all processes."""
        return self.root / "demo.log"

    @property
    def plot(self) -> Path:
        """The plot, which outlives the folder."""
        return self.root.parent / "lagwise-demo.html"

    @property
    def config(self) -> Path:
        """The configuration, after `write_config`."""
        return self.root / "lagwise.toml"

    def write_config(self, bootstrap: str) -> None:
        """Write the configuration with the address of the demo's own broker."""
        text = TEMPLATE.read_text(encoding="utf-8")
        self.config.write_text(text.replace(_ADDRESS, bootstrap), encoding="utf-8")


@contextmanager
def occupied(*, keep: bool) -> Iterator[Folder]:
    """An empty folder, locked for the body; it is removed on exit unless `keep` is set or the body failed.

    Raises:
        ConfigError: Another demo is running here.
    """
    ROOT.parent.mkdir(exist_ok=True)
    place = os.open(ROOT.parent, os.O_RDONLY)
    try:
        _lock(place)
        shutil.rmtree(ROOT, ignore_errors=True)
        ROOT.mkdir()
        yield Folder(ROOT)
        if not keep:
            shutil.rmtree(ROOT)
    finally:
        os.close(place)


def _lock(place: int) -> None:
    try:
        fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ConfigError(
            f"another demo runs in {ROOT.absolute()}; end it first, or start this one in another directory"
        ) from None

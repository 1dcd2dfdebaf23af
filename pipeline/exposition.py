"""What Prometheus is told about a family of samples, and single samples as text (format 0.0.4)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


@dataclass(frozen=True, slots=True)
class Family:
    """Samples of one name."""

    name: str
    help: str
    """One line."""
    kind: Literal["gauge", "counter", "histogram"] = "gauge"

    @property
    def header(self) -> str:
        """The lines before its samples."""
        return f"# HELP {self.name} {self.help}\n# TYPE {self.name} {self.kind}\n"

    def text(self, samples: Mapping[tuple[tuple[str, str], ...], float | None]) -> str:
        """The family with one line for each number by its labels; no line for an unknown one.

        Args:
            samples: By pairs of label and value.
        """
        lines = (
            line(self.name, dict(labels), value) for labels, value in samples.items() if value is not None
        )
        text = "".join(lines)
        return self.header + text if text else ""


def line(name: str, labels: Mapping[str, str], value: float) -> str:
    """One sample."""
    pairs = ",".join(f'{label}="{escaped(text)}"' for label, text in labels.items())
    return f"{name}{{{pairs}}} {value}\n" if pairs else f"{name} {value}\n"


def escaped(text: str) -> str:
    """The value of a label, between its quotation marks."""
    return text.translate(_ESCAPES)


# What the driver says of itself, and `serve` of the driver.
LIVE = Family("lagwise_live", "1 while the driver works, or waits for what is not in its hands")
READY = Family("lagwise_ready", "1 while the tables are up to date")
LAST_BATCH = Family("lagwise_last_batch_timestamp_seconds", "Clock of the newest batch")
PROVISIONAL = Family(
    "lagwise_provisional_partitions", "Partitions of the offsets topic whose groups are provisional"
)

"""Logs: one line per event on stderr, `time level logger message key=value …`, readable by people and by scripts."""

import json
import logging
from datetime import datetime, timezone

from pipeline.errors import without_queries

# Attributes that every LogRecord has; all others come from `extra`.
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}


class _Line(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, tz=timezone.utc).isoformat(timespec="milliseconds")
        fields = {name: value for name, value in vars(record).items() if name not in _STANDARD}
        pairs = "".join(f" {name}={_text(value)}" for name, value in fields.items())
        line = f"{at.replace('+00:00', 'Z')} {record.levelname:7} {record.name} {record.getMessage()}{pairs}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return without_queries(line)


def _text(value: object) -> str:
    if isinstance(value, str) and value and not set(value) & set(' "=\n'):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)


def configure() -> None:
    """Send the logs of `pipeline` to stderr, and only warnings and errors of libraries."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Line())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("pipeline").setLevel("INFO")
    # py4j logs each callback that a stop interrupts.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)

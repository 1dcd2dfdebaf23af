"""The dashboards of deploy/monitoring, and what they ask."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tests.support.operate.monitoring import HOME

_ASKS_NOTHING = {"row", "text"}
_LABEL_VALUES = re.compile(r"label_values\((.+), (\w+)\)")


@dataclass(frozen=True)
class Query:
    """One query of a panel."""

    panel: str
    expr: str
    legend: str

    def filled(self, **variables: str) -> str:
        """What Grafana sends with these values of its variables."""
        text = self.expr.replace("$__rate_interval", "1m")
        for name, value in variables.items():
            text = text.replace(f"${name}", value)
        return text


@dataclass(frozen=True)
class Dashboard:
    """One of them."""

    name: str

    @cached_property
    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((HOME / f"{self.name}.json").read_text(encoding="utf-8"))
        return found

    @property
    def panels(self) -> list[dict[str, Any]]:
        """Those that ask something."""
        return [panel for panel in self.json["panels"] if panel["type"] not in _ASKS_NOTHING]

    @property
    def queries(self) -> Iterator[Query]:
        """Of all panels."""
        for panel in self.panels:
            for target in panel["targets"]:
                yield Query(panel["title"], target["expr"], target["legendFormat"])

    @property
    def variables(self) -> dict[str, tuple[str, str]]:
        """Those that ask for the values of a label: selector and label."""
        asking = (one for one in self.json["templating"]["list"] if one["type"] == "query")
        return {one["name"]: _asked(one["definition"]) for one in asking}


def _asked(definition: str) -> tuple[str, str]:
    found = _LABEL_VALUES.fullmatch(definition)
    assert found, definition
    return found[1], found[2]


DASHBOARDS = [Dashboard(page.stem) for page in sorted(HOME.glob("*.json"))]

"""What stands in deploy/monitoring, and which names a PromQL expression uses."""

import re
from dataclasses import dataclass
from pathlib import Path

HOME = Path(__file__).parents[3] / "deploy" / "monitoring"
TESTS = sorted(HOME.glob("tests/*.yaml"))

_FIELD = re.compile(r"^( *)(\w+): ?(.*)$")
_TESTED = re.compile(r"^ +alertname: (\w+)\n +exp_alerts:( \[\])?$", re.MULTILINE)

_NOISE = re.compile(r'"(?:[^"\\]|\\.)*"|\[[^\]]*\]|\boffset \w+')
_LABEL_LIST = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)")
_SELECTOR = re.compile(r"(?<![\w:.$])([a-zA-Z_:][\w:]*)\s*(?:\{([^}]*)\})?(?!\w*\s*\()")
_NO_METRICS = {"and", "or", "unless", "bool", "inf", "nan"}


@dataclass(frozen=True)
class Alert:
    """One rule of alerts.yaml."""

    name: str
    expr: str
    annotations: dict[str, str]


@dataclass(frozen=True)
class Used:
    """What an expression names."""

    selectors: tuple[tuple[str, frozenset[str]], ...]
    """Metric and the labels that it is selected by."""
    labels: frozenset[str]
    """In the lists of `by`, `on` and their like."""


def alerts() -> list[Alert]:
    """The rules, in the one layout that alerts.yaml has; promtool reads them in any."""
    chunks = (HOME / "alerts.yaml").read_text(encoding="utf-8").split("\n      - alert: ")[1:]
    return [_alert(chunk.partition("\n  - name:")[0]) for chunk in chunks]


def _alert(chunk: str) -> Alert:
    name, *lines = chunk.splitlines()
    fields: dict[str, str] = {}
    at = ""
    for line in lines:
        found = _FIELD.match(line)
        if found and len(found[1]) in {8, 10}:
            at = found[2]
            fields[at] = found[3].removeprefix(">-").removeprefix("|")
        else:
            fields[at] = f"{fields[at]} {line.strip()}".strip()
    expr = fields.pop("expr")
    assert fields.keys() == {"for", "labels", "annotations", "summary", "description", "runbook_url"}, name
    return Alert(name, expr, {key: fields[key] for key in ("summary", "description", "runbook_url")})


def with_tests() -> tuple[set[str], set[str]]:
    """Alerts of which some test of promtool says that they fire, and those of which some says that they do not."""
    found = [one for page in TESTS for one in _TESTED.findall(page.read_text(encoding="utf-8"))]
    return {name for name, empty in found if not empty}, {name for name, empty in found if empty}


def used(expr: str) -> Used:
    """The names in a PromQL expression."""
    text = _NOISE.sub("", expr)
    labels = {label for found in _LABEL_LIST.findall(text) for label in re.findall(r"\w+", found)}
    text = _LABEL_LIST.sub("", text)
    selectors = [
        (name, frozenset(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", matchers)))
        for name, matchers in _SELECTOR.findall(text)
        if name not in _NO_METRICS
    ]
    return Used(tuple(selectors), frozenset(labels))

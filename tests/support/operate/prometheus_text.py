"""Prometheus text, read by the rules of its format 0.0.4 and not a bit more: whatever is not in it is refused.

A label that is empty is none, as for Prometheus.
"""

import re
from dataclasses import dataclass, field

Series = tuple[str, frozenset[tuple[str, str]]]

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"')
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|Inf)|NaN")
_ESCAPE = re.compile(r"\\(.)")
_KINDS = {"gauge", "counter", "histogram"}
_OF_HISTOGRAM = re.compile(r"_(?:bucket|sum|count)$")


@dataclass
class Scrape:
    """One scrape: the number of each series, and the kind of each family."""

    values: dict[Series, float] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    helps: dict[str, str] = field(default_factory=dict)

    def value(self, name: str, **labels: str) -> float | None:
        """Of the series with these labels and no others."""
        return self.values.get((name, frozenset(labels.items())))

    def of(self, name: str) -> dict[frozenset[tuple[str, str]], float]:
        """All series of a name by their labels."""
        return {labels: value for (one, labels), value in self.values.items() if one == name}


def parse(text: str) -> Scrape:
    """Read a scrape.

    Raises:
        AssertionError: It is not in the format, a series is in it twice, or samples of a family are not together.
    """
    scrape, family, closed = Scrape(), "", set[str]()
    assert text.endswith("\n") or not text
    for line in text.split("\n")[:-1]:
        if line.startswith("# "):
            _comment(line, scrape)
            continue
        name, labels, value = _sample(line)
        base = _OF_HISTOGRAM.sub("", name)
        now = base if scrape.kinds.get(base) == "histogram" else name
        assert now in scrape.kinds, f"no TYPE before {line!r}"
        if now != family:
            assert now not in closed, f"{now} is in two places"
            closed.add(family)
            family = now
        assert (name, labels) not in scrape.values, f"twice: {line!r}"
        scrape.values[name, labels] = value
    assert scrape.kinds.keys() == scrape.helps.keys()
    return scrape


def _comment(line: str, scrape: Scrape) -> None:
    _, what, name, text = line.split(" ", 3)
    assert _NAME.fullmatch(name), line
    into = {"HELP": scrape.helps, "TYPE": scrape.kinds}[what]
    assert name not in into, f"twice: {line!r}"
    assert what == "HELP" or text in _KINDS, line
    into[name] = text


def _sample(line: str) -> tuple[str, frozenset[tuple[str, str]], float]:
    name = _NAME.match(line)
    assert name, repr(line)
    at, labels = name.end(), dict[str, str]()
    if line[at] == "{":
        at += 1
        while line[at] != "}":
            label = _LABEL.match(line, at)
            assert label, f"{line!r} at {at}"
            assert label[1] not in labels, line
            labels[label[1]] = _ESCAPE.sub(lambda found: "\n" if found[1] == "n" else found[1], label[2])
            at = label.end() + (line[label.end()] == ",")
        at += 1
    assert line[at] == " ", repr(line)
    assert _NUMBER.fullmatch(line[at + 1 :]), repr(line)
    return name[0], frozenset((k, v) for k, v in labels.items() if v), float(line[at + 1 :])

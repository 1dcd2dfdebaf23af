"""What the documents point to is there, and what they show is what the code reads and writes."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from assignor.protocol import acks, commands, control
from pipeline.config.model import Config
from pipeline.tables.schemas import TABLES

_ROOT = Path(__file__).parents[2]
_HOMES = (_ROOT, _ROOT / "pipeline", _ROOT / "assignor")
_DOCS = _ROOT / "deploy" / "docs"
_RECORDS = (_DOCS / "records.md").read_text(encoding="utf-8")
_MAPS = (_ROOT / "CONTRIBUTING.md", _DOCS / "architecture.md")
_PAGES = sorted(
    page
    for place in ("*.md", "deploy/**/*.md", "assignor/**/*.md", "pipeline/**/*.md", "tests/**/*.md")
    for page in _ROOT.glob(place)
)


def name(page: Path) -> str:
    return str(page.relative_to(_ROOT))


def prose(page: Path) -> str:
    """The page without what is quoted as code: a link in there is none."""
    blocks = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`", "", blocks.sub("", page.read_text(encoding="utf-8")))


def anchors(page: Path) -> set[str]:
    """The ends of links that a forge makes of headings."""
    blocks = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#{1,6} +(.+?) *$", blocks.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def broken_links(page: Path) -> Iterator[str]:
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if "://" in link or link.startswith("mailto:"):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            yield link


@pytest.mark.parametrize("page", _PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    assert list(broken_links(page)) == []


def missing_files(page: Path) -> Iterator[str]:
    """Paths in backticks that do not exist; a name without a folder may be in the one named before it."""
    for line in page.read_text(encoding="utf-8").splitlines():
        folder: Path | None = None
        for text in re.findall(r"`([\w/.]+(?:\.(?:py|toml|md)|/))`", line):
            path = Path(text)
            if folder and len(path.parts) == 1 and any((home / folder / path).exists() for home in _HOMES):
                continue
            if not any((home / path).exists() for home in _HOMES):
                yield text
            folder = path if text.endswith("/") else path.parent


@pytest.mark.parametrize("page", _MAPS, ids=name)
def test_files_and_folders_that_show_the_way_exist(page: Path) -> None:
    known_by_pattern = {"assignor/strategies/NAME.py", "NAME.py"}
    assert set(missing_files(page)) - known_by_pattern == set()


def missing_names(page: Path) -> Iterator[str]:
    """Names such as `lag.step.measure_lag` in backticks that begin with a package and lead to nothing.

    A package and a section of the configuration may have one name.
    """
    for text in re.findall(r"`([a-z_]+(?:\.\w+)+)`", page.read_text(encoding="utf-8")):
        first, *rest = text.split(".")
        places = [home / first for home in _HOMES if (home / first).is_dir()]
        is_setting = (
            first in Config.model_fields and rest[0] in Config.model_fields[first].annotation.model_fields
        )
        if places and not (is_setting or any(leads_somewhere(place, rest) for place in places)):
            yield text


def leads_somewhere(place: Path, names: list[str]) -> bool:
    if not names:
        return True
    module = place / f"{names[0]}.py"
    if not module.exists():
        return (place / names[0]).is_dir() and leads_somewhere(place / names[0], names[1:])
    code = module.read_text(encoding="utf-8")
    return all(re.search(rf"^(?:def |class |){name}\b", code, re.MULTILINE) for name in names[1:])


@pytest.mark.parametrize("page", _MAPS, ids=name)
def test_names_that_show_the_way_exist(page: Path) -> None:
    assert list(missing_names(page)) == []


def example(title: str) -> tuple[bytes, bytes]:
    """Key and value in the section of that title."""
    section = _RECORDS.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]
    key, value = re.findall(r"^```json\n(.*?)\n```$", section, re.MULTILINE | re.DOTALL)[:2]
    return key.encode(), value.encode()


def test_control_record_of_the_documents_is_the_one_of_the_code() -> None:
    key, value = example("The control topic")

    record = control.decode(value)

    assert control.encode_key(*control.decode_key(key)) == key
    assert control.decode_key(key) == (record.cluster, record.group)
    assert json.loads(control.encode(record)) == json.loads(value)


def test_acknowledgement_of_the_documents_is_the_one_of_the_code() -> None:
    key, value = example("The acks topic")

    assert json.loads(acks.encode(acks.decode(key, value))) == json.loads(value)


def test_orders_of_the_documents_are_those_of_the_code() -> None:
    key, value = example("The commands topic")

    assert json.loads(commands.encode(commands.decode(key, value))) == json.loads(value)


def test_every_table_is_in_the_page_of_tables() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", (_DOCS / "tables.md").read_text(encoding="utf-8"), re.MULTILINE)

    assert {table.name for table in TABLES} == set(rows)

"""Dashboards ask for what is there, and fit together."""

import re
from itertools import combinations
from typing import Any

import pytest

from tests.support.operate.dashboards import DASHBOARDS, Dashboard
from tests.support.operate.exposed import Exposed, exposed
from tests.unit.test_monitoring import labels_of, unknown_in

each = pytest.mark.parametrize("board", DASHBOARDS, ids=lambda one: one.name)


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Exposed:
    return exposed(tmp_path_factory.mktemp("tables"))


def test_there_are_three() -> None:
    assert [board.name for board in DASHBOARDS] == ["fleet", "group", "lagwise"]


@each
def test_queries_ask_for_what_is_exposed(board: Dashboard, known: Exposed) -> None:
    wrong = {query.expr: unknown for query in board.queries if (unknown := unknown_in(query.expr, known))}
    assert wrong == {}
    for query in board.queries:
        assert set(re.findall(r"\{\{(\w+)\}\}", query.legend)) <= labels_of(query.expr, known), query


@each
def test_variables_are_all_given_and_ask_for_what_is_exposed(board: Dashboard, known: Exposed) -> None:
    used = {name for query in board.queries for name in re.findall(r"\$(?!__)(\w+)", query.expr)}
    assert used == board.variables.keys()
    for selector, label in board.variables.values():
        assert unknown_in(selector, known) == set()
        assert label in labels_of(selector, known)


@each
def test_every_query_is_sent_to_the_source_that_was_chosen(board: Dashboard) -> None:
    source = {"type": "prometheus", "uid": "${datasource}"}
    asking = [*board.panels, *(target for panel in board.panels for target in panel["targets"])]
    asking += [one for one in board.json["templating"]["list"] if one["type"] == "query"]
    assert [one["datasource"] for one in asking] == [source] * len(asking)


@each
def test_panels_have_titles_and_numbers_of_their_own_and_do_not_overlap(board: Dashboard) -> None:
    panels = board.json["panels"]
    assert all(panel["title"] for panel in panels)
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert [pair for pair in combinations(panels, 2) if overlap(pair[0]["gridPos"], pair[1]["gridPos"])] == []
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in panels)


def overlap(one: dict[str, int], other: dict[str, int]) -> bool:
    return all(
        one[at] < other[at] + other[size] and other[at] < one[at] + one[size]
        for at, size in (("x", "w"), ("y", "h"))
    )


@each
def test_links_lead_to_a_dashboard_and_give_it_its_variables(board: Dashboard) -> None:
    by_uid = {one.json["uid"]: one for one in DASHBOARDS}
    assert len(by_uid) == len(DASHBOARDS)
    for url in links(board.json["panels"]):
        found = re.match(r"/d/([\w-]+)\?", url)
        assert found, url
        assert set(re.findall(r"var-(\w+)=", url)) == by_uid[found[1]].variables.keys()


def links(part: Any) -> list[str]:
    """All addresses below this part."""
    if isinstance(part, dict):
        own = [part["url"]] if "url" in part else []
        return own + [url for one in part.values() for url in links(one)]
    return [url for one in part for url in links(one)] if isinstance(part, list) else []

"""The page shows what the API says, loads nothing from elsewhere, and takes no name for markup."""

import gzip
import json
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import pytest

from pipeline.config.model import Config
from pipeline.operate.serve.app import build_app
from pipeline.operate.serve.views import history
from pipeline.tables.reading import OpenTable, Tables
from tests.support.operate.asgi import ask
from tests.support.operate.read_html import Read
from tests.support.operate.serving import Answer
from tests.support.operate.table_world import NOON, World

Asking = Callable[..., Answer]
HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "a/b",
    "..",
    "new\nline",
    "%2F",
    "{{ 7*7 }}",
    "ü&b",
]
PATHS = ["/", "/group?id=billing", "/health", "/static/page.css", "/static/refresh.js"]


@pytest.mark.usefixtures("billing")
def test_fleet_has_the_figures_of_the_api(page: Asking) -> None:
    html = page("/").text
    groups = json.loads(page("/api/v1/groups").text)["groups"]

    shown = Read(html)
    assert [row[0] for row in shown.texts[1:]] == ["billing", "other"]
    billing = shown.row("billing")
    assert billing[1:8] == [
        "stuck",
        "at least 70,128 1 of 3 unknown",
        "-",
        "at least 1 2 of 3 unknown",
        "at least 15.2 min",
        "STALL 1 UNKNOWN 1 OK 1",
        "2 1 idle",
    ]
    assert billing[-3:] == ["held back by cooldown, paused, last plan partly", "4.0 min → 44.0 s", "Stable"]
    for row in groups:
        for figure in ("lag", "lag_seconds", "member_count", "arrival_rate", "drain_rate"):
            assert row[figure] is None or str(row[figure]) in shown.values


@pytest.mark.usefixtures("billing")
def test_group_has_the_figures_of_the_api(page: Asking) -> None:
    shown = Read(page("/group?id=billing").text)
    found = json.loads(page("/api/v1/groups/billing").text)

    figures = (
        "partitions",
        "lag",
        "lag_at_commit",
        "lag_seconds",
        "arrival_rate",
        "drain_rate",
        "partitions_after",
        "lag_after",
    )
    for member in found["members"]:
        for figure in figures:
            assert member[figure] is None or str(member[figure]) in shown.values
    members = [row for row in shown.texts if row[0] in {"one", "two", "nobody"} and len(row) == 14]
    assert members == [
        [
            "one",
            "/10.0.0.1",
            "STALL",
            "2",
            "70,128",
            "at least 69,000 1 of 2 unknown",
            "15.2 min",
            "6.5",
            "4.0",
            "-",
            "1, 0",
            "1",
            "70,123",
            "-",
        ],
        ["two", "/10.0.0.2", "-", "0", "0", "0", "0.0 s", "0.0", "0.0", "-", "0, 1", "1", "5", "-"],
        ["nobody", "-", "UNKNOWN", "1", "- 1 of 1 unknown", "-", "-", "-", "-", "-", "0, 0", "1", "-", "-"],
    ]


@pytest.mark.usefixtures("billing")
def test_lag_at_the_newest_commits_stands_beside_the_lag_and_says_when_it_is_partial(page: Asking) -> None:
    text = " ".join(re.sub(r"<[^>]+>", " ", page("/group?id=billing").text).split())

    assert "lag at the newest commits at least 69,000 2 of 3 unknown oldest record" in text
    assert "lag 70,123, 69,000 at its newest commit, 912.5 s, STALL" in text


def test_age_0_at_an_old_log_end_is_at_least_0(world: World, page: Asking) -> None:
    world.write(
        "partition_lag",
        {
            "lag": 0,
            "lag_seconds": 0.0,
            "lag_seconds_is_lower_bound": False,
            "log_observed_at": NOON - timedelta(hours=1),
        },
    )

    text = " ".join(re.sub(r"<[^>]+>", " ", page("/group?id=billing").text).split())

    assert "lag 0 (old), at least 0.0 s, OK" in text
    assert "oldest record waits at least 0.0 s" in text
    assert "the lag of 1 of 1 partitions is unknown or old" in text


def test_partitions_read_as_in_the_command(billing: World, page: Asking) -> None:
    shown = Read(page("/group?id=billing").text)

    header, *lines = (line.split() for line in billing.run("lag", "--group", "billing").stdout.splitlines())
    table = shown.texts[shown.texts.index(header[1:]) + 1 :]
    assert sorted(table[: len(lines)]) == sorted(line[1:] for line in lines)


@pytest.mark.usefixtures("billing")
def test_plan_is_told_with_its_guard_its_outcome_and_the_orders(page: Asking) -> None:
    text = " ".join(re.sub(r"<[^>]+>", " ", page("/group?id=billing").text).split())

    assert "guard that holds it back cooldown" in text
    assert "epoch 6, partly, 2 of 3 moves made" in text
    assert "predicted, realised 40.5 s , 61.2 s" in text
    assert "paused yes: &lt;i&gt;night&lt;/i&gt;" in text
    assert "newest approval plan 3f2a-91bc by ann@page at 2026-01-31 12:00:00 : INC-1" in text


def test_effect_and_probation_are_on_the_page_of_the_group_and_marked_in_the_fleet(
    billing: World, page: Asking
) -> None:
    plan = {"epoch": 6, "moves": 3, "moves_made": 3, "published_at": NOON, "status": "applied"}
    effect = {"plan_effect": "hurt", "plan_effect_why": "member <b> loses ground", "probation_until": NOON}
    billing.replace("plan_state", {"decision": "unchanged", "plan": plan, **effect, "recorded_at": NOON})

    text = " ".join(re.sub(r"<[^>]+>", " ", page("/group?id=billing").text).split())
    assert "effect hurt: member &lt;b&gt; loses ground" in text
    assert "on probation until 2026-01-31 12:00:00 , since a plan hurt the group" in text
    assert Read(page("/").text).row("billing")[-3] == "paused, last plan applied, hurt, on probation"
    told = json.loads(page("/api/v1/groups/billing").text)["group"]["plan"]
    assert (told["published"]["effect"], told["probation_until"]) == ("hurt", "2026-01-31T12:00:00.000000Z")


@pytest.mark.usefixtures("billing")
def test_group_that_no_plan_hurt_has_neither(page: Asking) -> None:
    assert "probation" not in page("/group?id=billing").text + page("/").text


@pytest.mark.usefixtures("billing")
def test_partition_that_moves_is_outlined_and_said_to_move(page: Asking) -> None:
    cells = {
        attrs["title"]: attrs["class"]
        for tag, attrs in Read(page("/group?id=billing").text).tags
        if tag == "li" and "title" in attrs
    }

    assert cells == {
        "invoices-0: lag 70,123, 69,000 at its newest commit, 912.5 s, STALL": "cell l5",
        "invoices-1: lag 5, 1.0 s, OK, moves to two": "cell l1 moved",
        "invoices-2: lag unknown, UNKNOWN": "cell lunknown",
    }


def test_history_ends_with_the_lag_of_now_and_marks_what_changed(billing: World, page: Asking) -> None:
    rows = [{"lag": minutes, "updated_at": NOON - timedelta(minutes=minutes)} for minutes in range(90, 0, -5)]
    billing.write("lag_history", *(row for row in rows if not 40 < row["lag"] < 70))
    billing.write("group_history", {"why": "joined", "updated_at": NOON - timedelta(minutes=40)})
    billing.write(
        "recommendations", {"epoch": 6, "created_at": NOON - timedelta(minutes=35), "date": NOON.date()}
    )

    html = page("/group?id=billing").text
    curves = [str(attrs["points"]).split() for tag, attrs in Read(html).tags if tag == "polyline"]

    assert len(curves) == 2, "where nothing is known for long there is a gap"
    assert curves[1][-1].startswith("708.0,")
    assert "<title>11:20:00 joined</title>" in html
    assert "<title>11:25:00 plan epoch 6 published</title>" in html


@pytest.mark.parametrize(
    ("minutes", "words"),
    [(None, "3 hours"), (4, "5 minutes"), (12, "15 minutes"), (59, "hour"), (90, "3 hours")],
)
def test_history_is_drawn_for_as_long_as_there_is_any(
    billing: World, page: Asking, minutes: int | None, words: str
) -> None:
    if minutes is not None:
        rows = [{"lag": ago, "updated_at": NOON - timedelta(minutes=ago)} for ago in (minutes, 1)]
        billing.write("lag_history", *rows)

    html = page("/group?id=billing").text

    assert f'<h2 id="lag">Lag, last {words}</h2>' in html
    assert ("<polyline" in html) == (minutes is not None)


@pytest.mark.parametrize(("most", "words"), [(14, "3 hours"), (13, "hour"), (3, "15 minutes"), (2, None)])
def test_history_of_many_rows_is_drawn_for_as_long_as_memory_allows(
    billing: World, page: Asking, monkeypatch: pytest.MonkeyPatch, most: int, words: str | None
) -> None:
    monkeypatch.setattr(history, "MOST_ROWS", most)
    ages = [12, 13, 14, *range(30, 80, 5), 170]
    billing.write("lag_history", *({"lag": 5, "updated_at": NOON - timedelta(minutes=ago)} for ago in ages))
    billing.write("lag_history", *({"group_id": "other", "lag": 5, "updated_at": NOON} for _ in range(99)))
    read, original = [], OpenTable.read

    def reads(table: OpenTable, **more: Any) -> Any:
        rows = original(table, **more)
        read.append(rows.num_rows if table.name == "lag_history" else 0)
        return rows

    monkeypatch.setattr(OpenTable, "read", reads)

    html = page("/group?id=billing").text

    assert max(read) <= most
    assert f'<h2 id="lag">Lag, last {words or "5 minutes"}</h2>' in html
    assert ("The group has too many partitions to draw its history." in html) == (words is None)
    read.clear()
    assert page("/group?id=billing").text
    assert max(read, default=0) == 0, "kept for this version of the tables"


def test_age_of_the_oldest_record_is_drawn_beside_the_lag(billing: World, page: Asking) -> None:
    rows = [
        {"lag": 5, "lag_seconds": seconds, "partition": at, "updated_at": NOON - timedelta(minutes=minutes)}
        for minutes in range(59, 0, -5)
        for at, seconds in enumerate((60.0 * minutes, 3.0, None))
    ]
    billing.write("lag_history", *rows)

    html = page("/group?id=billing").text
    age = html[html.index('<h2 id="age">') :]

    assert html.count('<svg class="plot"') == 2
    assert age.startswith('<h2 id="age">Oldest unread record waited, last hour</h2>')
    assert ">75 min</text>" in age, "the oldest of the partitions, in the unit that fits"


@pytest.mark.usefixtures("billing")
def test_old_figures_are_said_to_be_old(page: Asking) -> None:
    for path in PATHS[:3]:
        html = page(path).text
        assert "These figures are old." in html
        assert '<data value="60.0">60.0 s</data> ago' in html


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.usefixtures("billing")
def test_browser_may_load_from_here_alone_and_no_inline_code(page: Asking, path: str) -> None:
    answer = page(path)

    policy = answer.headers["content-security-policy"]
    assert answer.status == 200
    assert policy.startswith(
        "default-src 'none'; style-src 'self'; img-src 'self' data:; script-src 'self'; connect-src 'self';"
    )
    assert "unsafe" not in policy
    for tag, attrs in Read(answer.text).tags:
        assert tag != "style"
        assert tag != "script" or attrs == {"src": "/static/refresh.js", "defer": None}
        assert not any(name == "style" or name.startswith("on") for name in attrs)
        for name in ("href", "src", "action"):
            assert (attrs.get(name) or "/").startswith(("/", "#", "data:,"))


@pytest.mark.parametrize("name", HOSTILE)
def test_name_of_a_group_is_text_wherever_it_stands(world: World, name: str) -> None:
    world.write(
        "partition_lag", {"group_id": name, "topic": name, "lag": 3, "client_id": name, "member_id": name}
    )
    world.write(
        "consumer_groups",
        {"group_id": name, "members": [{"member_id": name, "client_id": name, "topics": []}]},
    )
    world.complete()
    app = build_app(Tables(str(world.root)), Config())

    fleet = Read(ask(app, "/").text)
    link = next(attrs["href"] for tag, attrs in fleet.tags if tag == "a" and "/group?" in str(attrs["href"]))
    group = ask(app, str(link))

    shown = name.replace("\n", "\\n")
    assert link == "/group?id=" + quote(name, safe="")
    assert group.status == 200
    assert fleet.texts[1][0] == shown
    tags = Read(group.text).tags
    assert [attrs["src"] for tag, attrs in tags if tag in {"script", "img"}] == ["/static/refresh.js"]
    for tag, attrs in Read(group.text).tags:
        if tag == "a" and str(attrs["href"]).startswith("/api"):
            assert ask(app, str(attrs["href"])).status == 200


def test_rows_are_sorted_and_filtered_as_asked(world: World, page: Asking) -> None:
    world.write(
        "partition_lag",
        {"group_id": "a", "lag": 1, "lag_seconds": 9.0},
        {"group_id": "B", "lag": 3, "status": "STALL"},
        {"group_id": "ab", "lag_seconds": 10.0},
    )

    def names(path: str) -> list[str]:
        return [row[0] for row in Read(page(path).text).texts[1:]]

    assert names("/") == ["B", "a", "ab"]
    assert names("/?sort=lag_seconds") == ["ab", "a", "B"]
    assert names("/?sort=group") == ["B", "a", "ab"]
    assert names("/?sort=nonsense&q=B") == ["B", "ab"]
    assert names("/?status=STALL") == ["B"]
    assert names("/?q=" + quote('"><script>')) == []


def test_group_of_no_commits_and_group_of_no_record_are_shown(world: World, page: Asking) -> None:
    world.write("consumer_groups", {"group_id": "empty", "state": "Empty", "members": []})
    world.write("partition_lag", {"group_id": "assigned", "lag": 2})

    assert Read(page("/").text).row("empty")[1:8] == ["no commits", "-", "-", "-", "-", "-", "0"]
    assert Read(page("/").text).row("assigned")[1:8] == ["not known", "2", "-", "-", "-", "OK 1", "-"]
    for name in ("empty", "assigned"):
        assert page(f"/group?id={name}").status == 200


def test_unknown_group_and_missing_tables_are_told(world: World) -> None:
    app = build_app(Tables(str(world.root)), Config())
    missing = ask(app, "/")
    world.complete()

    assert (missing.status, "no table partition_lag under" in missing.text) == (503, True)
    unknown = ask(app, "/group?id=none")
    assert (unknown.status, "No group of this name" in unknown.text) == (404, True)
    assert ask(app, "/", method="POST").status == 405
    assert ask(app, "/group?id=billing", method="POST").status == 405


def test_members_of_one_name_are_told_apart_by_the_ends_of_their_ids(world: World, page: Asking) -> None:
    ids = ["app-0-aaaa1111", "app-1-bbbb1111", "app-2-cccc2222"]
    members: list[dict[str, Any]] = [
        *({"member_id": one, "client_id": "app", "assigned": []} for one in ids),
        {"member_id": "other-1", "client_id": "other", "assigned": []},
    ]
    world.write("consumer_groups", {"members": members})
    world.write("partition_lag", {"lag": 3, "member_id": ids[1], "client_id": "app"})

    shown = Read(page("/group?id=billing").text)

    names = ["app …a1111", "app …b1111", "app …c2222", "other"]
    assert [row[0] for row in shown.texts if row and row[0] in names] == [*names, *names]


def test_many_partitions_are_shown_in_part_the_worst_first(world: World, page: Asking) -> None:
    world.write("partition_lag", *({"partition": number, "lag": number} for number in range(3_100)))

    html = page("/group?id=billing", Accept_Encoding="gzip")
    shown = Read(gzip.decompress(html.body).decode())

    cells = [attrs["title"] for tag, attrs in shown.tags if tag == "li" and "title" in attrs]
    assert len(cells) == 3_000
    assert str(cells[0]).startswith("invoices-100: ")
    assert "100 partitions with the least lag have no cell" in gzip.decompress(html.body).decode()

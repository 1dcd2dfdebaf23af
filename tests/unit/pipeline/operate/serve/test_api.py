"""The JSON API says what the commands say with `-o json`, of the same tables."""

import gzip
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import pytest

from pipeline.config.model import Config
from pipeline.operate.serve.app import build_app
from pipeline.tables.reading import Tables
from pipeline.tables.stamp import Stamp
from tests.support.operate.asgi import ask
from tests.support.operate.serving import Answer
from tests.support.operate.table_world import NOON, World

Asking = Callable[..., Answer]
HOSTILE = [
    "<script>alert(1)</script>",
    "a\"b'c&d",
    "a/b",
    "..",
    ".",
    "a/../b",
    "new\nline",
    "%2F",
    "ü b",
    "*",
    "a?b#c",
]
STAMP = Stamp(batch_id=7, at_ms=int(NOON.timestamp() * 1000))
MEMBERS = [
    {"member_id": "m-1", "client_id": "one", "client_host": "/10.0.0.1", "assigned": [("invoices", [0, 1])]},
    {"member_id": "m-2", "client_id": "two", "client_host": "/10.0.0.2", "assigned": []},
]


@pytest.fixture
def api(world: World) -> Asking:
    world.complete()
    app = build_app(Tables(str(world.root)), Config())
    return lambda path, **headers: ask(app, f"/api/v1{path}", **headers)


@pytest.fixture
def billing(world: World) -> World:
    """A group of two members, one of them idle, with a partition of which nothing is known."""
    owner = {"member_id": "m-1", "client_id": "one", "client_host": "/10.0.0.1", "assigned": True}
    world.write(
        "partition_lag",
        {"lag": 70, "lag_seconds": 12.5, "status": "STALL", "arrival_rate": 3.0, "drain_rate": 2.0, **owner},
        {"lag": 5, "partition": 1, "lag_seconds": 1.0, "arrival_rate": 1.0, "drain_rate": 1.0, **owner},
        {"partition": 2, "status": "UNKNOWN"},
        {"group_id": "other", "lag": 0, "log_observed_at": NOON - timedelta(hours=1)},
        stamp=STAMP,
    )
    world.write("consumer_groups", {"generation": 4, "state": "Stable", "members": MEMBERS})
    return world


def rows(world: World, *arguments: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(world.run(*arguments, "-o", "json").stdout)
    return found


def test_groups_are_those_of_the_commands(billing: World, api: Asking) -> None:
    found = json.loads(api("/groups").text)["groups"]

    listed = {row["group_id"]: row for row in rows(billing, "groups")}
    totals = {row["group_id"]: row for row in rows(billing, "lag", "--total", "group")}
    assert [row["group_id"] for row in found] == list(listed)
    for row in found:
        told = listed[row["group_id"]]
        assert row["member_count"] == (len(told.pop("members")) if told["members"] else told.pop("members"))
        assert told.items() <= row.items()
        assert totals[row["group_id"]].items() <= row.items()


@pytest.mark.usefixtures("billing")
def test_group_says_how_many_partitions_are_of_which_status_worst_first(api: Asking) -> None:
    group = json.loads(api("/groups/billing").text)["group"]

    assert list(group["statuses"].items()) == [("STALL", 1), ("UNKNOWN", 1), ("OK", 1)]
    assert (group["members_idle"], group["unknown_lag"], group["arrival_rate"]) == (1, 1, None)


def test_partitions_are_those_of_the_command(billing: World, api: Asking) -> None:
    assert json.loads(api("/groups/billing/partitions").text)["partitions"] == rows(
        billing, "lag", "--group", "billing"
    )


def test_rates_of_a_member_whose_partitions_have_no_rows_are_unknown(billing: World, api: Asking) -> None:
    given = {
        "member_id": "m-3",
        "client_id": "new",
        "client_host": "/10.0.0.3",
        "assigned": [("orders", [0])],
    }
    billing.replace("consumer_groups", {"generation": 5, "state": "Stable", "members": [*MEMBERS, given]})

    found = {one["member_id"]: one for one in json.loads(api("/groups/billing").text)["members"]}

    assert (found["m-3"]["arrival_rate"], found["m-3"]["drain_rate"]) == (None, None)
    assert (found["m-2"]["arrival_rate"], found["m-2"]["drain_rate"]) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("group_type", "members", "told"),
    [("classic", [], []), ("consumer", None, None), ("share", [], None), ("streams", None, None)],
)
def test_members_that_nobody_knows_are_null_and_no_empty_list(
    world: World, api: Asking, group_type: str, members: list[Any] | None, told: list[Any] | None
) -> None:
    world.write("consumer_groups", {"group_type": group_type, "members": members})

    found = json.loads(api("/groups/billing").text)

    assert (found["members"], found["group"]["member_count"]) == (told, None if told is None else 0)


def test_figures_of_a_member_whose_assignment_cannot_be_read_are_unknown(world: World, api: Asking) -> None:
    unread = {"member_id": "w", "client_id": "w", "client_host": "/h", "error": "torn"}
    world.write("consumer_groups", {"members": [unread]})

    found = json.loads(api("/groups/billing").text)

    (one,) = found["members"]
    assert [one[name] for name in ("partitions", "lag", "arrival_rate", "status")] == [None] * 4
    assert found["group"]["members_idle"] == 0


def test_members_are_those_of_the_command_and_who_idles(billing: World, api: Asking) -> None:
    found = json.loads(api("/groups/billing").text)["members"]

    totals = {
        row["member_id"]: row for row in rows(billing, "lag", "--group", "billing", "--total", "member")
    }
    assert [row["member_id"] for row in found] == ["m-1", "m-2", None]
    assert [row["lag"] for row in found] == [75, 0, None]
    for row in found:
        told = totals.get(row["member_id"], {"partitions": 0})
        assert {name: row[name] for name in told if name in row} == {
            n: v for n, v in told.items() if n in row
        }


def test_decisions_are_those_of_the_command(billing: World, api: Asking) -> None:
    move = {"topic": "invoices", "partition": 1, "from": "m-1", "to": "m-2", "lag": 5}
    for minute in range(3):
        billing.write(
            "recommendations",
            {
                "epoch": minute,
                "created_at": NOON + timedelta(minutes=minute),
                "moves": [move],
                "drain_s_after": 1.5,
            },
        )

    found = json.loads(api("/groups/billing/decisions?last=2").text)["decisions"]

    assert found == rows(billing, "recommendations", "--group", "billing", "--last", "2")
    assert [row["epoch"] for row in found] == [2, 1]


@pytest.mark.usefixtures("billing")
@pytest.mark.parametrize("last", ["0", "-1", "x", "1001", "99999999999999999999", "٣"])
def test_last_that_is_no_number_of_decisions_is_refused(api: Asking, last: str) -> None:
    answer = api(f"/groups/billing/decisions?last={quote(last)}")

    assert (answer.status, json.loads(answer.text)) == (400, {"error": "last is a number from 1 to 1000"})


def test_target_says_what_each_member_would_have(billing: World, api: Asking) -> None:
    billing.write(
        "plan_state",
        {
            "recorded_at": NOON,
            "decision": "unchanged",
            "reason": "held back by cooldown: 3 s",
            "assignment": [("m-1", [("invoices", "0")]), ("m-2", [("invoices", "1")])],
            "moves": [{"topic": "invoices", "partition": 1, "from": "m-1", "to": "m-2", "lag": 5}],
            "drain_s_before": 60.0,
            "capacity_known": True,
        },
    )

    found = json.loads(api("/groups/billing").text)

    assert (found["group"]["plan"]["guard"], found["group"]["plan"]["drain_s_before"]) == ("cooldown", 60.0)
    assert found["group"]["plan"]["drain_s_after"] is None
    assert found["group"]["plan"]["capacity_known"] is True
    after = [
        (one["partitions_after"], one["lag_after"], one["moves_from"], one["moves_to"])
        for one in found["members"]
    ]
    assert after == [(1, 70, 1, 0), (1, 5, 0, 1), (1, None, 0, 0)]


@pytest.mark.usefixtures("billing")
def test_old_tables_are_said_to_be_old(api: Asking) -> None:
    answer = api("/groups")

    found = json.loads(answer.text)
    assert (found["observed_at"], found["is_old"]) == ("2026-01-31T12:00:00.000000Z", True)
    assert int(answer.headers["age"]) > 0


def test_same_version_is_not_sent_again(billing: World, api: Asking) -> None:
    first = api("/groups/billing")

    again = api("/groups/billing", If_None_Match=f'"x", {first.headers["etag"]}')
    billing.write("partition_lag", {"lag": 9, "partition": 3}, stamp=STAMP)
    after = api("/groups/billing", If_None_Match=first.headers["etag"])

    assert (again.status, again.body, again.headers["etag"]) == (304, b"", first.headers["etag"])
    assert (after.status, json.loads(after.text)["group"]["lag"]) == (200, 84)


@pytest.mark.usefixtures("billing")
def test_long_answer_is_compressed_for_who_takes_that(api: Asking) -> None:
    answer = api("/groups/billing/partitions", Accept_Encoding="gzip, br")

    assert answer.headers["content-encoding"] == "gzip"
    assert gzip.decompress(answer.body) == api("/groups/billing/partitions").body


@pytest.mark.parametrize("name", HOSTILE)
def test_any_name_of_a_group_can_be_asked_for(world: World, name: str) -> None:
    world.write("partition_lag", {"group_id": name, "lag": 3}, {"group_id": "another", "lag": 4})
    world.complete()
    app = build_app(Tables(str(world.root)), Config())
    path = "/api/v1/groups/" + quote(name, safe="")

    assert json.loads(ask(app, path).text)["group"]["lag"] == 3
    assert [row["group_id"] for row in json.loads(ask(app, f"{path}/partitions").text)["partitions"]] == [
        name
    ]
    assert json.loads(ask(app, f"{path}/decisions").text)["decisions"] == []


@pytest.mark.usefixtures("billing")
@pytest.mark.parametrize(
    "path", ["/groups/none", "/groups/none/partitions", "/groups/none/decisions", "/groups/bil*"]
)
def test_unknown_group_is_not_found(api: Asking, path: str) -> None:
    answer = api(path)

    assert (answer.status, json.loads(answer.text)) == (404, {"error": "no group of this name"})


def test_nothing_can_be_written(billing: World) -> None:
    app = build_app(Tables(str(billing.root)), Config())

    for path in ("/api/v1/groups", "/api/v1/groups/billing", "/api/v1/health"):
        assert ask(app, path, method="POST").status == 405


def test_tables_that_are_not_there_yet_are_named(world: World) -> None:
    app = build_app(Tables(str(world.root)), Config())

    for path in ("/groups", "/groups/billing", "/health"):
        answer = ask(app, f"/api/v1{path}")
        assert answer.status == 503
        assert json.loads(answer.text)["error"].startswith("no table partition_lag under")


def test_health_is_that_of_the_command(billing: World, api: Asking) -> None:
    found = json.loads(api("/health").text)

    told = billing.run("health").stdout
    assert found["state"] == "critical"
    assert found["reasons"][0] in told
    assert (found["batch_id"], found["provisional_partitions"]) == (7, 0)

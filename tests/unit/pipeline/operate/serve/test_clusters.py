"""Several clusters in one process: each row, link, sample and order is of the cluster that it says."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import quote

import pytest
from deltalake import CommitProperties, DeltaTable

from pipeline import clock
from pipeline.config.model import Config
from pipeline.errors import ConfigError
from pipeline.operate.cli import serve as command
from pipeline.operate.cli.locations import find_several
from pipeline.operate.serve.app import build_app
from pipeline.operate.serve.clusters import Deployment
from pipeline.tables.reading import Tables
from pipeline.tables.stamp import Stamp
from tests.support.operate.asgi import ask
from tests.support.operate.cluster_world import cluster_world
from tests.support.operate.prometheus_text import parse
from tests.support.operate.serving import Answer, serving
from tests.support.operate.table_world import World


@pytest.fixture
def both(eu: World, us: World) -> Callable[..., Answer]:
    app = app_of(eu, us)
    return lambda path, **headers: ask(app, path, **headers)


def app_of(*worlds: World) -> Any:
    first, *others = (Deployment(tables=Tables(str(one.root)), config=Config()) for one in worlds)
    return build_app(first.tables, first.config, others=others)


def break_tables(world: World) -> None:
    shutil.rmtree(world.root / "partition_lag" / "_delta_log")


def lose_files(world: World) -> None:
    """Tables that can be opened, and not read."""
    for file in (world.root / "partition_lag").glob("*.parquet"):
        file.unlink()


def sign_as_another(world: World) -> None:
    """A commit of a program that is not lagwise."""
    handle = DeltaTable(str(world.root / "partition_lag"))
    commit = CommitProperties(custom_metadata={"userMetadata": "nightly OPTIMIZE"})
    handle.create_write_transaction([], "append", handle.schema(), commit_properties=commit)


def sign_without_a_time(world: World) -> None:
    handle = DeltaTable(str(world.root / "partition_lag"))
    commit = CommitProperties(custom_metadata={"userMetadata": '{"batch_id": 1, "at_ms": 1e30}'})
    handle.create_write_transaction([], "append", handle.schema(), commit_properties=commit)


def rows_of(answer: Answer) -> set[tuple[str, str, int | None]]:
    return {(row["cluster"], row["group_id"], row["lag"]) for row in json.loads(answer.text)["groups"]}


def test_groups_of_all_clusters_stand_together_each_with_its_cluster(both: Callable[..., Answer]) -> None:
    answer = both("/api/v1/groups")

    assert rows_of(answer) == {
        ("eu", "billing", 70),
        ("eu", "of-eu", 1),
        ("us", "billing", 5),
        ("us", "of-us", 1),
    }
    assert [one["cluster"] for one in json.loads(answer.text)["clusters"]] == ["eu", "us"]
    html = both("/").text
    assert html.count('<td data-head="Cluster">eu</td>') == html.count('<td data-head="Cluster">us</td>') == 2


def test_link_of_each_row_leads_to_the_group_of_its_cluster(both: Callable[..., Answer]) -> None:
    html = both("/").text

    for name, lag in (("eu", 70), ("us", 5)):
        path = f"/group?id=billing&cluster={name}"
        assert f'href="{path.replace("&", "&amp;")}"' in html
        page = both(path).text
        assert f'<data value="{lag}">' in page
        assert f'href="/api/v1/groups/billing?cluster={name}"' in page
        told = json.loads(both(f"/api/v1/groups/billing?cluster={name}").text)
        assert (told["cluster"], told["group"]["lag"]) == (name, lag)
        partitions = json.loads(both(f"/api/v1/groups/billing/partitions?cluster={name}&limit=1").text)
        assert [row["lag"] for row in partitions["partitions"]] == [lag]
    assert both("/group?id=of-us&cluster=eu").status == 404


@pytest.mark.parametrize("query", ["", "?cluster=asia", "?cluster="])
def test_group_of_no_cluster_is_not_guessed(both: Callable[..., Answer], query: str) -> None:
    answer = both(f"/api/v1/groups/billing{query}")

    assert answer.status == 400
    assert "there are several clusters" in answer.text
    assert both(f"/group{query or '?'}&id=billing").status == 404


def test_page_can_be_narrowed_to_a_cluster_and_sorting_keeps_that(both: Callable[..., Answer]) -> None:
    html = both("/?cluster=us").text

    assert "2 shown of 2 found, 4 in all" in html
    assert "/group?id=billing&amp;cluster=eu" not in html
    assert 'href="/?sort=lag&amp;q=&amp;status=&amp;cluster=us"' in html


@pytest.mark.parametrize("harm", [break_tables, lose_files])
def test_cluster_whose_tables_are_broken_is_told_and_the_others_stay_true(
    eu: World, us: World, both: Callable[..., Answer], harm: Callable[[World], None]
) -> None:
    harm(eu)

    page, api = both("/"), both("/api/v1/groups")

    assert (page.status, api.status) == (200, 200)
    assert "<strong>eu:</strong> <strong>Not available: its groups are not shown.</strong>" in page.text
    assert f"{eu.root}" in page.text
    assert '<td data-head="Cluster">eu</td>' not in page.text
    assert rows_of(api) == {("us", "billing", 5), ("us", "of-us", 1)}
    told = json.loads(api.text)
    assert (told["observed_at"], told["is_old"]) == (None, True), "no driver is alive, and one is not known"
    broken, sound = told["clusters"]
    assert (broken["observed_at"], str(eu.root) in broken["error"]) == (None, True)
    assert sound["error"] is None
    assert sound["observed_at"] is not None
    assert both("/group?id=billing&cluster=eu").status == 503
    assert both("/group?id=billing&cluster=us").status == 200
    assert us.run("lag").exit_code == 0


@pytest.mark.parametrize("harm", [sign_as_another, sign_without_a_time])
@pytest.mark.parametrize("path", ["/", "/health", "/metrics", "/api/v1/groups", "/api/v1/health", "/readyz"])
def test_commit_of_another_program_makes_one_cluster_unreadable_and_no_page_fail(
    eu: World, both: Callable[..., Answer], harm: Callable[[World], None], path: str
) -> None:
    harm(eu)

    answer = both(path)

    assert answer.status == (503 if path == "/readyz" else 200), "no driver is alive"
    assert "us" in answer.text
    assert 'cluster="eu"} 0' in answer.text if path == "/metrics" else "is not lagwise" in answer.text
    alone = ask(app_of(eu), path)
    assert (alone.status, "another program has written to the table" in alone.text) == (503, True)


@pytest.mark.parametrize("path", ["/", "/health", "/metrics", "/api/v1/groups", "/api/v1/health", "/readyz"])
def test_log_that_cannot_be_read_any_more_makes_no_page_fail(
    eu: World, both: Callable[..., Answer], path: str
) -> None:
    def history(handle: DeltaTable, limit: int | None = None) -> list[dict[str, Any]]:
        if str(eu.root) in handle.table_uri:
            raise OSError("connection refused")
        return whole(handle, limit)

    whole = DeltaTable.history
    with patch.object(DeltaTable, "history", history):
        answer = both(path)

    assert answer.status == (503 if path == "/readyz" else 200)
    assert 'cluster="eu"} 0' in answer.text if path == "/metrics" else "connection refused" in answer.text


def test_cluster_that_was_never_readable_goes_by_the_place_of_its_tables(us: World, tmp_path: Path) -> None:
    app = app_of(World(tmp_path / "not-there"), us)
    place = str(tmp_path / "not-there")

    assert f"<strong>{place}:</strong>" in ask(app, "/").text
    cluster_world(tmp_path / "not-there", "asia", lag=3)
    assert f"/group?id=billing&cluster={'asia'}".replace("&", "&amp;") in ask(app, "/").text
    # A link from before it could be read.
    assert "Cluster asia" in ask(app, f"/group?id=billing&cluster={quote(place, safe='')}").text


def test_clusters_of_the_same_name_are_told_apart_by_the_place_of_their_tables(
    tmp_path: Path,
) -> None:
    worlds = [cluster_world(tmp_path / name, "prod", lag=lag) for name, lag in (("a", 1), ("b", 2))]
    app = app_of(*worlds)

    assert {
        (name, lag) for name, group, lag in rows_of(ask(app, "/api/v1/groups")) if group == "billing"
    } == {
        (f"prod ({worlds[0].root})", 1),
        (f"prod ({worlds[1].root})", 2),
    }
    wanted = quote(f"prod ({worlds[1].root})", safe="")
    assert json.loads(ask(app, f"/api/v1/groups/billing?cluster={wanted}").text)["group"]["lag"] == 2


def test_no_cluster_at_all_is_no_page(eu: World, us: World, both: Callable[..., Answer]) -> None:
    for one in (eu, us):
        break_tables(one)

    for path in ("/", "/health", "/metrics", "/api/v1/groups", "/api/v1/health", "/readyz"):
        answer = both(path)
        assert answer.status == 503, path
        assert str(eu.root) in answer.text
        assert str(us.root) in answer.text


def test_samples_of_all_clusters_have_a_label_and_each_family_is_told_about_once(
    eu: World, both: Callable[..., Answer]
) -> None:
    text = both("/metrics").text
    found = parse(text)

    place = {"consumergroup": "billing", "topic": "invoices", "partition": "0"}
    assert found.value("kafka_consumergroup_lag", cluster="eu", **place) == 70
    assert found.value("kafka_consumergroup_lag", cluster="us", **place) == 5
    assert found.value("lagwise_tables_readable", cluster="eu") == 1
    assert all("cluster" in dict(labels) for _, labels in found.values)
    heads = [line for line in text.splitlines() if line.startswith("# HELP")]
    assert len(heads) == len(set(heads))

    break_tables(eu)
    rest = parse(both("/metrics").text)
    assert rest.value("lagwise_tables_readable", cluster="eu") == 0
    assert rest.value("kafka_consumergroup_lag", cluster="us", **place) == 5
    assert {dict(labels)["cluster"] for name, labels in rest.values if name != "lagwise_tables_readable"} == {
        "us"
    }


def test_label_of_a_cluster_is_escaped_and_text_like_a_sample_is_left_alone(
    tmp_path: Path, us: World
) -> None:
    strange = cluster_world(tmp_path / "strange", 'a"b\\c\nkafka_consumergroup_lag{', lag=7)

    found = parse(ask(app_of(strange, us), "/metrics").text)

    names = {dict(labels).get("cluster") for _, labels in found.values}
    assert names == {'a"b\\c\nkafka_consumergroup_lag{', "us"}


def test_metrics_of_several_are_made_anew_when_one_changes(
    eu: World, us: World, both: Callable[..., Answer]
) -> None:
    place = {"consumergroup": "billing", "topic": "invoices", "partition": "0"}
    both("/metrics")
    us.replace("partition_lag", {"cluster": "us", "lag": 6}, stamp=Stamp(batch_id=8, at_ms=clock.now_ms()))

    found = parse(both("/metrics").text)

    assert found.value("kafka_consumergroup_lag", cluster="us", **place) == 6
    assert found.value("kafka_consumergroup_lag", cluster="eu", **place) == 70
    assert eu.root.exists()


def test_answer_that_has_not_changed_is_not_sent_again_and_a_failure_is(
    eu: World, both: Callable[..., Answer]
) -> None:
    first = both("/api/v1/groups")
    assert both("/api/v1/groups", If_None_Match=first.headers["etag"]).status == 304

    break_tables(eu)
    broken = both("/api/v1/groups", If_None_Match=first.headers["etag"])

    assert broken.status == 200
    assert both("/api/v1/groups", If_None_Match=broken.headers["etag"]).status == 304


def test_health_is_that_of_each_cluster(both: Callable[..., Answer]) -> None:
    assert [one["cluster"] for one in json.loads(both("/api/v1/health").text)["clusters"]] == ["eu", "us"]
    assert json.loads(both("/api/v1/health?cluster=us").text)["cluster"] == "us"
    assert both("/api/v1/health?cluster=asia").status == 400
    html = both("/health").text
    assert "Health of eu" in html
    assert "Health of us" in html
    ready = both("/readyz")
    assert ready.status == 503, "no driver is alive"
    assert list(json.loads(ready.text)["clusters"]) == ["eu", "us"]


def test_list_of_a_cluster_that_is_not_shown_is_no_empty_list(both: Callable[..., Answer]) -> None:
    page, told = both("/?cluster=asia"), both("/api/v1/groups?cluster=asia")

    assert (page.status, told.status) == (404, 400)
    assert "No cluster of this name" in page.text
    for one in (page, told):
        assert "is not shown here: eu, us" in one.text
    assert "4 shown of 4 found" in both("/?cluster=").text


def test_groups_can_be_asked_of_one_cluster(both: Callable[..., Answer]) -> None:
    told = both("/api/v1/groups?cluster=us")

    assert rows_of(told) == {("us", "billing", 5), ("us", "of-us", 1)}
    assert [one["cluster"] for one in json.loads(told.text)["clusters"]] == ["us"]


def test_list_by_the_place_of_the_tables_is_that_of_the_cluster(
    us: World, both: Callable[..., Answer]
) -> None:
    """As such a link had it, while the name could not be read."""
    place = quote(str(us.root), safe="")

    html = both(f"/?cluster={place}").text

    assert "2 shown of 2 found, 4 in all" in html
    assert "<option selected>us</option>" in html
    assert rows_of(both(f"/api/v1/groups?cluster={place}")) == {("us", "billing", 5), ("us", "of-us", 1)}


def test_settings_of_further_files_that_do_not_apply_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    files = []
    for name, serve in {
        "a": 'host = "127.0.0.1"',
        "b": 'port = 9000\nread_token = "env:B"',
        "c": 'host = "127.0.0.1"',
        "d": "",
    }.items():
        files.append(tmp_path / f"{name}.toml")
        files[-1].write_text(f'[serve]\n{serve}\n[tables]\nroot = "{tmp_path / name}"\n', encoding="utf-8")
    monkeypatch.setattr(command, "answer", lambda *_, **__: None)

    command.serve(config=files)

    told = [line for line in capsys.readouterr().err.splitlines() if "[serve]" in line]
    (line,) = told
    assert f"port, read_token in the file for {tmp_path / 'b'} is not used" in line


def test_command_shows_the_clusters_of_its_options(eu: World, us: World) -> None:
    with serving("--tables", str(eu.root), "--tables", str(us.root)) as running:
        assert rows_of(running.get("/api/v1/groups")) >= {("eu", "billing", 70), ("us", "billing", 5)}


def test_options_that_do_not_say_which_cluster_is_meant_are_refused(tmp_path: Path) -> None:
    files = []
    for name in "ab":
        file = tmp_path / f"{name}.toml"
        file.write_text(
            f'[cluster]\nname = "{name}"\n[tables]\nroot = "{tmp_path / name}"\n', encoding="utf-8"
        )
        files.append(file)

    with pytest.raises(ConfigError, match=r"^several --config name the tables themselves"):
        find_several(["x"], files)
    with pytest.raises(ConfigError, match=r"is not|named twice"):
        find_several(["x", "x"], [])
    with pytest.raises(ConfigError, match=r"named twice"):
        find_several([], [files[0], files[0]])
    assert [one.config.cluster.name for one in find_several([], files)] == ["a", "b"]
    # Kafka of the file is that of its own tables alone.
    of_one = find_several([str(tmp_path / "b"), str(tmp_path / "a")], files[:1])
    assert [(one.is_configured, one.config.cluster.name) for one in of_one] == [(False, ""), (True, "a")]

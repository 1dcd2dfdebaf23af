import json
from pathlib import Path

from pipeline.operate.demo.folder import Folder
from pipeline.operate.demo.report.summary import Summary, next_commands, summarise
from pipeline.operate.demo.report.timeline import GroupTimeline
from tests.support.operate.demo_views import group, plan, share, snapshot, timeline


def _summarise(seconds: list[float], *timelines: GroupTimeline) -> Summary:
    shares = share("a", partitions=2, lag=5), share("b", partitions=1, lag=6)
    plans = plan(epoch=1), plan(epoch=2), plan(epoch=None, decision="abstain")
    return summarise(
        seconds,
        snapshot(group(*shares), group(share(lag=1), group_id="other"), plans=plans),
        timelines,
        folder=Folder(Path(".lagwise/demo")),
        control_topic="lagwise.assignments",
        bootstrap="127.0.0.1:1",
    )


def test_json_has_exactly_the_promised_fields(tmp_path: Path) -> None:
    file = tmp_path / "summary.json"

    _summarise([3.0, 1.0, 2.0], timeline()).write(file)

    assert json.loads(file.read_text()) == {
        "batches": 3,
        "batch_seconds_p50": 2.0,
        "groups": 2,
        "partitions": 6,
        "total_lag": 12,
        "published": 2,
        "tables_root": str(Path(".lagwise/demo/tables").absolute()),
        "control_topic": "lagwise.assignments",
        "bootstrap_servers": "127.0.0.1:1",
        "by_group": [
            {
                "group_id": "billing",
                "follows": True,
                "lag_at_start": 9000,
                "lag_at_end": 1000,
                "most_lag": 12_000,
                "was_behind": True,
                "drained_s": 60.0,
                "moves": 3,
            }
        ],
        "plot": str(Path(".lagwise/lagwise-demo.html").absolute()),
    }


def test_without_a_batch_there_is_no_median() -> None:
    assert _summarise([]).batch_seconds_p50 is None


def test_without_a_group_there_is_nothing_to_plot() -> None:
    assert _summarise([]).plot is None
    assert "lag over time" not in "".join(_summarise([]).lines())


def test_words_end_with_a_table_of_groups_and_the_place_of_the_plot() -> None:
    plain = timeline(group_id="billing-plain", follows=False, drained_s=None, moves_at_s=())

    lines = _summarise([1.0], timeline(), plain).lines()

    assert lines[-5:-2] == [
        "GROUP          FOLLOWS  LAG AT START  LAG NOW  MOST LAG  DRAINED AFTER  PARTITIONS MOVED",
        "billing        yes             9,000    1,000    12,000           60 s                 3",
        "billing-plain  no              9,000    1,000    12,000    not drained                 -",
    ]
    assert lines[-1].endswith("/.lagwise/lagwise-demo.html")


def test_next_commands_name_what_was_kept() -> None:
    folder = Folder(Path("here"))

    kept = "\n".join(next_commands(folder, kept=True, bootstrap="127.0.0.1:29092"))
    gone = "\n".join(next_commands(folder, kept=False, bootstrap="127.0.0.1:29092"))

    assert "--tables here/tables" in kept
    assert "--data here/broker --port 29092" in kept
    assert "here" not in gone


def test_next_commands_name_no_broker_that_never_started() -> None:
    said = next_commands(Folder(Path(".lagwise/demo")), kept=True, bootstrap="")

    assert not any("lagwise broker" in line for line in said)

import json
from pathlib import Path

from pipeline.demo.folder import Folder
from pipeline.demo.summary import Summary, next_commands, summarise
from tests.support.demo_scenes import group, plan, share, snapshot


def _summarise(seconds: list[float]) -> Summary:
    shares = share("a", partitions=2, lag=5), share("b", partitions=1, lag=6)
    plans = plan(epoch=1), plan(epoch=2), plan(epoch=None, decision="abstain")
    return summarise(
        seconds,
        snapshot(group(*shares), group(share(lag=1), group_id="other"), plans=plans),
        tables_root=Path("tables"),
        control_topic="lagwise.assignments",
        bootstrap="127.0.0.1:1",
    )


def test_json_has_exactly_the_promised_fields(tmp_path: Path) -> None:
    file = tmp_path / "summary.json"

    _summarise([3.0, 1.0, 2.0]).write(file)

    assert json.loads(file.read_text()) == {
        "batches": 3,
        "batch_seconds_p50": 2.0,
        "groups": 2,
        "partitions": 6,
        "total_lag": 12,
        "published": 2,
        "tables_root": str(Path("tables").absolute()),
        "control_topic": "lagwise.assignments",
        "bootstrap_servers": "127.0.0.1:1",
    }


def test_without_a_batch_there_is_no_median() -> None:
    assert _summarise([]).batch_seconds_p50 is None


def test_next_commands_name_what_was_kept() -> None:
    folder = Folder(Path("here"))

    kept = "\n".join(next_commands(folder, kept=True, bootstrap="127.0.0.1:29092"))
    gone = "\n".join(next_commands(folder, kept=False, bootstrap="127.0.0.1:29092"))

    assert "--tables here/tables" in kept
    assert "--data here/broker --port 29092" in kept
    assert "here" not in gone

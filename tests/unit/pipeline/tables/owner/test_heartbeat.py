"""The owner's heartbeat: who writes it, who does not, and what it says at the end."""

import json
from pathlib import Path

import pytest

from pipeline.errors import FencedError, PipelineError, StoreError
from pipeline.tables.owner import heartbeat
from pipeline.tables.owner.beat_file import FILE_NAME
from pipeline.tables.owner.driver_report import DriverReport
from pipeline.tables.owner.heartbeat import Beat, Heartbeat
from tests.support.waiting import wait_until


def beat_of(root: Path) -> Beat:
    found = heartbeat.read(str(root), {})
    assert found is not None
    return found


def test_owner_writes_again_and_again_whatever_else_it_does(tmp_path: Path) -> None:
    with Heartbeat(str(tmp_path), {}, every_s=0.01) as own:
        own.begin("me", 3)
        first = beat_of(tmp_path)
        wait_until(lambda: beat_of(tmp_path).at_ms > first.at_ms, what="another beat")

    assert (first.owner, first.term, first.is_stopped) == ("me", 3, False)


def test_folder_need_not_be_there_yet_and_nothing_else_is_left_in_it(tmp_path: Path) -> None:
    root = tmp_path / "not" / "yet"
    with Heartbeat(str(root), {}) as own:
        own.begin("host/1/2", 1)

    assert [file.name for file in root.iterdir()] == [FILE_NAME]


@pytest.mark.parametrize("error", [None, PipelineError("disk full")], ids=["stopped", "failed"])
def test_owner_that_ends_by_itself_says_that_the_tables_are_free(
    tmp_path: Path, error: PipelineError | None
) -> None:
    try:
        with Heartbeat(str(tmp_path), {}) as own:
            own.begin("me", 3)
            if error:
                raise error
    except PipelineError:
        pass

    assert beat_of(tmp_path).is_stopped


def test_driver_that_was_replaced_neither_writes_nor_says_that_the_tables_are_free(tmp_path: Path) -> None:
    looks: list[Beat | None] = []

    class Looking(Heartbeat):
        def _seen(self) -> Beat | None:
            looks.append(super()._seen())
            return looks[-1]

    def be_replaced() -> None:
        with Looking(str(tmp_path), {}, every_s=0.01) as older:
            older.begin("older", 3)
            Heartbeat(str(tmp_path), {}, every_s=60).begin("newer", 4)
            before = len(looks)
            wait_until(lambda: len(looks) > before + 2, what="beats that were not written")
            raise FencedError

    with pytest.raises(FencedError):
        be_replaced()

    assert beat_of(tmp_path).owner == "newer"
    assert not beat_of(tmp_path).is_stopped


def test_beat_that_a_replaced_driver_wrote_between_check_and_write_is_repaired(tmp_path: Path) -> None:
    with Heartbeat(str(tmp_path), {}, every_s=0.01) as newer:
        newer.begin("newer", 4)
        Heartbeat(str(tmp_path), {}).claim("older")

        wait_until(lambda: beat_of(tmp_path).owner == "newer", what="the owner's next beat")


def test_driver_that_never_had_the_tables_leaves_the_beat_of_the_one_that_has(tmp_path: Path) -> None:
    owner = Heartbeat(str(tmp_path), {}, every_s=60)
    owner.begin("owner", 1)
    with Heartbeat(str(tmp_path), {}):
        pass

    assert beat_of(tmp_path).owner == "owner"
    assert not beat_of(tmp_path).is_stopped


def test_claim_stands_unless_somebody_has_written_since(tmp_path: Path) -> None:
    one, other = Heartbeat(str(tmp_path), {}, every_s=60), Heartbeat(str(tmp_path), {}, every_s=60)
    one.claim("one")
    other.claim("other")

    assert (one.is_confirmed(), other.is_confirmed()) == (False, True)


def test_beat_of_a_later_version_is_understood(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text(
        json.dumps({"owner": "me", "term": 1, "at_ms": 2, "is_stopped": False, "more": {}})
    )

    assert beat_of(tmp_path) == Beat(owner="me", term=1, at_ms=2)


@pytest.mark.parametrize("content", ["", "{}", "[1]", "\0"])
def test_file_that_is_no_beat_is_told_from_a_missing_one(tmp_path: Path, content: str) -> None:
    assert heartbeat.read(str(tmp_path), {}) is None
    (tmp_path / FILE_NAME).write_text(content)

    with pytest.raises(StoreError, match=FILE_NAME):
        heartbeat.read(str(tmp_path), {})


def test_tables_that_are_no_folder_here_have_no_beats(tmp_path: Path) -> None:
    assert not heartbeat.is_kept("gs://bucket/lagwise")
    assert heartbeat.read("gs://bucket/lagwise", {}) is None
    assert heartbeat.is_kept("s3://bucket/lagwise")
    assert heartbeat.is_kept("az://container/lagwise")
    assert heartbeat.is_kept(tmp_path.as_uri())


def test_what_the_owner_tells_of_itself_is_in_each_beat(tmp_path: Path) -> None:
    said = DriverReport(
        stage="running", interval_s=30, stuck_after_s=300, progress_at_ms=1, kafka_error="away"
    )
    with Heartbeat(str(tmp_path), {}, report=lambda: said) as own:
        own.begin("me", 3)

        assert beat_of(tmp_path).report == said


def test_beats_of_other_versions_are_read(tmp_path: Path) -> None:
    file = tmp_path / FILE_NAME
    earlier = {"owner": "me", "term": 3, "at_ms": 1, "is_stopped": False}
    told = {"stage": "running", "interval_s": 30, "stuck_after_s": 300, "progress_at_ms": 1, "mood": "fine"}

    file.write_text(json.dumps(earlier))
    assert beat_of(tmp_path).report is None
    file.write_text(json.dumps({**earlier, "report": told, "weather": "rain"}))
    assert beat_of(tmp_path).report == DriverReport.of(told)

"""What the job does when its query ends: wait, start again, give up, or stop for good."""

import errno
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from deltalake.exceptions import DeltaError
from py4j.protocol import Py4JNetworkError
from pyspark.errors import StreamingQueryException

from pipeline.config.model import Config
from pipeline.errors import (
    AccessRefusedError,
    AuthenticationError,
    BrokerUnavailableError,
    FencedError,
    MissingDependencyError,
    OffsetsRefusedError,
    QueryFailedError,
    SparkEndedError,
    StorageRefusedError,
    StorageUnavailableError,
    StoreError,
    TopicMissingError,
)
from pipeline.run import job as job_module
from pipeline.run.batch.steps import Done
from pipeline.run.driver import Driver
from pipeline.run.job import Job
from pipeline.run.query import _StopRequestedError, watch
from pipeline.tables import storage
from tests.support.job.batches import batch_of, deaf_session, done, idle_driver, runner_of
from tests.support.spark.read_frames import HereSpark


class ScriptedJob(Job):
    """A job whose query ends as the script says; the end of the script is a stop."""

    def __init__(self, *script: Exception | str) -> None:
        super().__init__(Config())
        self.script: Iterator[Exception | str] = iter(script)
        self.waited_s: list[float] = []
        self.stop.wait = self._wait  # no test waits for a minute

    def _wait(self, timeout: float | None = None) -> bool:
        self.waited_s.append(timeout or 0.0)
        return self.stop.is_set()

    def _stream(self, spark: Any) -> None:  # noqa: ARG002 - the signature of Job
        step = next(self.script, None)
        if isinstance(step, Exception):
            raise step
        if step == "batch":
            self._finished(SimpleNamespace(is_complete=True, is_overdue=False, has_read=True))  # all it reads
        else:
            self.stop.set()


@pytest.fixture(autouse=True)
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_module, "build_session", lambda *_args, **_more: deaf_session())
    monkeypatch.setattr(job_module, "create_tables", lambda *_args, **_more: None)
    monkeypatch.setattr(job_module, "_jars", tuple)
    monkeypatch.setattr(job_module, "has_ended", lambda _spark: False)
    monkeypatch.setattr(storage, "trouble", lambda _place: None)


NO_EXECUTORS: Any = SimpleNamespace(look=lambda: None)


def away() -> BrokerUnavailableError:
    return BrokerUnavailableError("no answer")


def broken() -> StreamingQueryException:
    return StreamingQueryException("it broke")


def refused() -> AccessRefusedError:
    return AccessRefusedError("not this user")


def test_cluster_that_is_away_is_waited_for_longer_each_time_up_to_a_quarter_of_a_minute() -> None:
    job = ScriptedJob(*(away() for _ in range(8)))

    job.run()

    assert job.waited_s == [1, 2, 4, 8, 15, 15, 15, 15]


def test_topic_that_is_gone_has_the_stream_started_again_and_is_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    job = ScriptedJob(TopicMissingError("topic lagwise.acks is gone"), "batch")

    job.run()

    assert job.waited_s == [1]
    (said,) = [record for record in caplog.records if "is gone" in record.message]
    assert said.__dict__["error"] == "topic lagwise.acks is gone"


def test_batch_in_between_makes_the_wait_short_again() -> None:
    job = ScriptedJob(away(), away(), "batch", away())

    job.run()

    assert job.waited_s == [1, 2, 1]


def test_query_that_fails_three_times_in_a_row_ends_the_job() -> None:
    job = ScriptedJob(broken(), broken(), broken())

    with pytest.raises(QueryFailedError, match=r"3 times in a row.*: it broke; .*start the driver again"):
        job.run()


def test_query_that_fails_three_times_in_a_row_says_what_its_batch_was_at() -> None:
    job = ScriptedJob(broken(), broken(), broken())
    job._runner = runner_with(ValueError("a mistake"))
    job._runner.failed_at = "fold partition_lag"

    with pytest.raises(QueryFailedError, match="fold partition_lag: it broke"):
        job.run()


def test_user_who_is_refused_three_times_in_a_row_ends_the_job() -> None:
    job = ScriptedJob(refused(), refused(), away(), broken(), refused(), refused(), refused())

    with pytest.raises(AccessRefusedError, match="not this user"):
        job.run()

    assert job.waited_s == [1, 2, 4, 8, 15]


class Inspecting(Job):
    """A job that looks at its cluster, and is then refused something."""

    def __init__(self, error: AccessRefusedError) -> None:
        super().__init__(Config())
        self.error = error
        self.stop.wait = lambda _timeout_s=None: False  # no test waits

    def _take_over(self, spark: Any, found: Any, admin: Any) -> Driver:  # noqa: ARG002 - the signature of Job
        raise self.error


@pytest.mark.parametrize(
    ("error", "taken"),
    [
        (OffsetsRefusedError("not the offsets topic"), [False, True, True]),
        (AccessRefusedError("not the control topic"), [False, False, False]),
        (AuthenticationError("who are you?"), [False, False, False]),
    ],
)
def test_refusal_of_the_offsets_topic_is_remembered_when_the_source_is_chosen_again(
    monkeypatch: pytest.MonkeyPatch, error: AccessRefusedError, taken: list[bool]
) -> None:
    given: list[bool] = []
    monkeypatch.setattr(job_module, "admin_client", lambda _config: (None, None))
    monkeypatch.setattr(
        job_module.cluster, "inspect", lambda *_args, is_refused, **_more: given.append(is_refused)
    )

    with pytest.raises(type(error)):
        Inspecting(error).run()

    assert given == taken


def query_that_ends(error: Exception) -> Any:
    def end(_timeout_s: float) -> bool:
        raise error

    return SimpleNamespace(awaitTermination=end)


def runner_with(failure: Exception | None) -> Any:
    return SimpleNamespace(stop=threading.Event(), failure=failure, failed_at=None, last_batch_at_s=0)


def test_query_ends_with_what_its_batch_has_raised() -> None:
    with pytest.raises(FencedError, match="another driver"):
        watch(
            query_that_ends(broken()), runner_with(FencedError("another driver")), NO_EXECUTORS, interval_s=1
        )


@pytest.mark.parametrize("failure", [None, ValueError("a mistake")], ids=["Spark", "a mistake"])
def test_query_that_ends_for_another_reason_says_what_spark_says(failure: Exception | None) -> None:
    with pytest.raises(StreamingQueryException, match="it broke"):
        watch(query_that_ends(broken()), runner_with(failure), NO_EXECUTORS, interval_s=1)


@pytest.mark.parametrize("error", [broken(), Py4JNetworkError("nobody answers"), ConnectionRefusedError()])
def test_spark_that_was_stopped_is_not_started_again(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_module, "has_ended", lambda _spark: True)
    job = ScriptedJob(error, "batch")

    with pytest.raises(SparkEndedError, match="start the driver again"):
        job.run()


def test_spark_that_ends_with_the_job_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_module, "has_ended", lambda _spark: True)
    job = ScriptedJob(broken())
    job.stop.set()

    nothing: Any = None
    job._stream_until_it_ends(nothing)


def test_error_that_is_not_of_the_query_is_raised() -> None:
    with pytest.raises(PermissionError):
        ScriptedJob(PermissionError("tables"), "batch").run()


class SetAside(list[str]):
    """Checkpoints that were set aside."""


@pytest.fixture
def aside(monkeypatch: pytest.MonkeyPatch) -> SetAside:
    names = SetAside()
    monkeypatch.setattr(
        job_module.query, "set_checkpoint_aside", lambda _spark, name, **_: names.append(name)
    )
    return names


def test_checkpoint_with_which_spark_fails_twice_in_a_row_is_set_aside(aside: SetAside) -> None:
    job = ScriptedJob(broken(), broken())
    job._runner = runner_with(None)

    job.run()

    assert aside == [job.config.tables.query_path]


def test_batch_that_fails_twice_in_a_row_keeps_its_checkpoint(aside: SetAside) -> None:
    job = ScriptedJob(broken(), broken())
    job._runner = runner_with(ValueError("a mistake"))

    job.run()

    assert aside == []


@pytest.mark.parametrize(
    "script",
    [
        (broken(), broken(), "batch", broken(), broken()),
        (away(), away(), away(), broken(), broken()),
    ],
    ids=["a batch in between", "a cluster that was away counts apart"],
)
def test_query_that_fails_now_and_then_is_started_again(script: tuple[Exception | str, ...]) -> None:
    job = ScriptedJob(*script)

    job.run()

    assert job.stop.is_set()


@pytest.mark.parametrize("is_of_driver", [True, False], ids=["of the driver", "of the query"])
def test_batch_that_begins_after_the_stop_does_nothing(*, is_of_driver: bool) -> None:
    stop = threading.Event()
    begun: list[int] = []
    nothing: Any = None

    def run_batch(driver: Driver, batch_id: int, _frame: Any) -> Done:
        begun.append(batch_id)
        return done(batch_of(driver))

    runner = runner_of(run_batch, stop=stop)
    (stop if is_of_driver else runner.ended).set()

    with pytest.raises(_StopRequestedError):
        runner(nothing, 1)

    assert begun == []


def test_storage_that_fails_is_waited_for_and_is_no_failure_of_the_query() -> None:
    full = StreamingQueryException("java.io.IOException: No space left on device")
    job = ScriptedJob(full, OSError(errno.EROFS, "Read-only file system"), full, full, "batch", full)

    job.run()

    assert job.waited_s == [1, 2, 4, 8, 1]


@pytest.mark.parametrize("error", [StoreError("the tables belong to cluster 'a'"), DeltaError("a mistake")])
def test_tables_that_are_wrong_are_not_waited_for(error: Exception) -> None:
    with pytest.raises(type(error)):
        ScriptedJob(error).run()


def test_batch_that_met_a_full_disk_tells_so_when_the_tables_can_be_written_again() -> None:
    def fails(*_: Any) -> Done:
        raise DeltaError("Failed to parse parquet: No space left on device (os error 28)")

    waited: list[str | None] = []
    storage_wait: Any = SimpleNamespace(until_usable=lambda error=None: waited.append(error))
    nothing: Any = None
    runner = runner_of(fails, storage=storage_wait)

    with pytest.raises(StorageUnavailableError, match="No space left"):
        runner(nothing, 1)

    assert waited[0] is None
    assert "No space left" in (waited[1] or "")


@pytest.mark.parametrize("has_been_written", [False, True])
def test_tasks_that_are_refused_are_waited_for_only_if_they_could_write_before(
    *, has_been_written: bool
) -> None:
    def fails(*_: Any) -> Done:
        raise StorageRefusedError("no rights")

    waited: list[str | None] = []
    storage_wait: Any = SimpleNamespace(
        until_usable=lambda error=None: waited.append(error), has_been_written=has_been_written
    )
    nothing: Any = None
    runner = runner_of(fails, storage=storage_wait)

    kind, words = (
        (StorageUnavailableError, "^no rights$")
        if has_been_written
        else (StorageRefusedError, "no rights; give the executors the driver's")
    )
    with pytest.raises(kind, match=words):
        runner(nothing, 1)

    assert waited == [None, *(["no rights"] if has_been_written else [])]


def test_tasks_that_were_never_allowed_to_write_end_the_job() -> None:
    with pytest.raises(StorageRefusedError):
        ScriptedJob(StorageRefusedError("tasks may not write")).run()


def test_batch_that_fails_in_a_job_of_spark_says_in_which_one_and_the_next_failure_does_not() -> None:
    driver = idle_driver(spark=HereSpark())
    nothing: Any = None

    def fails(_driver: Driver, batch_id: int, _frame: Any) -> Done:
        if batch_id == 1:
            driver.describe(batch_id, "fold partition_lag")
            assert driver.monitor.report().doing == "fold partition_lag"
        raise ValueError("a mistake")

    runner = runner_of(fails, driver=driver)
    failed_at = []
    for batch_id in (1, 2):
        with pytest.raises(ValueError, match="a mistake"):
            runner(nothing, batch_id)
        failed_at.append(runner.failed_at)

    assert failed_at == ["fold partition_lag", None]


def test_missing_java_is_named_also_when_the_jars_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> None:
        raise MissingDependencyError("PATH has no working Java")

    monkeypatch.undo()
    monkeypatch.setattr(job_module, "find_java", none)
    monkeypatch.setattr(job_module, "is_submitted", lambda: False)
    monkeypatch.setattr(job_module, "resolve_for_spark", lambda *_args, **_more: ())

    with pytest.raises(MissingDependencyError, match="no working Java"):
        job_module._jars()

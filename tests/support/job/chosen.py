"""What the source chooses for a driver's batches, from the stamps that they leave and from answers of a test."""

from collections.abc import Mapping

from pipeline.errors import PipelineError
from pipeline.kafka.positions import Answer, PartitionKey
from pipeline.run.assembly import build_source
from pipeline.run.driver import Driver
from pipeline.source.offset import SourceOffset, from_json
from pipeline.source.planner import Pace, Planner


class Chooser:
    """The source of one driver; a batch is due whenever it is asked.

    Attributes:
        answers: What the leaders say, or the error that nobody does.
        now_ms: Time.
    """

    def __init__(self, driver: Driver) -> None:
        self.answers: Mapping[PartitionKey, Answer] | PipelineError = {}
        self.now_ms = 0
        self._planner = Planner(
            build_source(driver.services, query="query", once=False, attempts=4),
            ask=self._ask,
            stamps=lambda _name: driver.progress.stamp,
            pace=Pace(0),
            now_ms=lambda: self.now_ms,
        )

    def next_offset(
        self, answers: Mapping[PartitionKey, Answer] | PipelineError, *, now_ms: int
    ) -> SourceOffset:
        """The next one, as it comes out of Spark's checkpoint."""
        self.answers, self.now_ms = answers, now_ms
        offset = self._planner.next_offset()
        assert offset is not None
        read = from_json(offset.to_json())
        assert read == offset
        return read

    def _ask(self) -> Mapping[PartitionKey, Answer]:
        if isinstance(self.answers, PipelineError):
            raise self.answers
        return self.answers

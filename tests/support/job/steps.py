"""Steps of a batch that a test watches, cuts short, or takes the values of from elsewhere."""

import inspect
import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from pipeline.run.batch import steps
from pipeline.run.batch.confirmation import Confirmed
from pipeline.run.batch.intake import Settled
from pipeline.run.batch.opening import Chosen
from pipeline.run.batch.steps import Done, Steps
from pipeline.run.driver import Driver
from pipeline.run.health.monitor import Monitor
from pipeline.run.query import RunBatch
from pipeline.source.offset import SourceOffset

STEP_NAMES = tuple(re.findall(r"\bdo\((\w+)", inspect.getsource(steps.run)))
"""In their order."""


class WatchedSteps(Steps):
    """Steps of a batch.

    Attributes:
        driver: Whose batch it is.
        values: What the steps so far have returned, by their names.
    """

    driver: Driver

    def __init__(self, monitor: Monitor) -> None:
        super().__init__(monitor)
        self.values: dict[str, Any] = {}

    def __call__(self, step: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        name = step.__name__
        if name == "begin":
            self.driver = args[0]
        self.values[name] = self.value(step, *args, **kwargs)
        self.behind(name)
        return self.values[name]

    def value(self, step: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """What the step returns."""
        return super().__call__(step, *args, **kwargs)

    def behind(self, name: str) -> None:
        """Called behind each step."""

    @property
    def batch(self) -> Settled | None:
        """The batch, once it is settled."""
        return self.values.get("settle")


class AmongGhosts(WatchedSteps):
    """Without the step that drops groups which no coordinator knows: forged groups are of that kind."""

    def value(self, step: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return () if step.__name__ == "find_ghosts" else super().value(step, *args, **kwargs)


AMONG_GHOSTS: RunBatch = partial(steps.run, steps=AmongGhosts)


class CutShortError(Exception):
    """Ends a batch behind a step, as a crash does."""


class _SomeSteps(WatchedSteps):
    """Some steps of a batch that is settled; of the others the values are given."""

    def __init__(
        self, monitor: Monitor, *, batch: Settled, called: Iterable[str], cut_behind: str | None
    ) -> None:
        super().__init__(monitor)
        self._called = frozenset(called)
        self._cut_behind = cut_behind
        self._given = {
            "read_source": batch.read,
            "settle_offset": Chosen(
                batch_id=batch.stamp.batch_id,
                at_ms=batch.stamp.at_ms,
                clock_trouble=None,
                offset=SourceOffset(tick=batch.stamp.tick, made_from="empty"),
            ),
            "settle": batch,
            "find_ghosts": (),
            "confirm_rows": Confirmed(ghosts=(), commits=batch.read.decoded.kind("commit", "tombstone")),
            "store_topic_offsets": (),
            "store_lag": batch.stamp,
            "make_plans": False,
            "publish_plans": 0,
        }

    def value(self, step: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        name = step.__name__
        return super().value(step, *args, **kwargs) if name in self._called else self._given.get(name)

    def behind(self, name: str) -> None:
        if name == self._cut_behind:
            raise CutShortError


def run_steps(batch: Settled, *called: Callable[..., Any], cut_behind: str | None = None) -> Done:
    """The batch, when these of its steps were called and the others have left no trace.

    Raises:
        CutShortError: It was cut short.
    """
    nothing: Any = None
    names = [step.__name__ for step in called]
    some = partial(_SomeSteps, batch=batch, called=names, cut_behind=cut_behind)
    done = steps.run(batch.driver, batch.stamp.batch_id, nothing, steps=some)
    assert isinstance(done, Done)
    return done

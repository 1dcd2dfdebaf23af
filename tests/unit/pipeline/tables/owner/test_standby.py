"""When a standby takes over. Time is the standby's own: a clock that each look moves on by a second."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from pipeline.config.model import Config, TablesConfig
from pipeline.errors import StoreError
from pipeline.tables.owner import heartbeat, standby
from pipeline.tables.owner.heartbeat import Beat, Heartbeat

HOUR_MS = 3_600_000


def beat(at_ms: int, *, owner: str = "owner") -> Beat:
    return Beat(owner=owner, term=1, at_ms=at_ms)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standby, "_LOOK_EVERY_S", 0)


def looks_until_turn(*signs: Any, then: Any, patience_s: float = 3) -> int:
    """How many looks it takes; an exception among the signs is raised."""
    count = itertools.count(1)
    script: Iterator[Any] = itertools.chain(signs, itertools.repeat(then))
    looks = 0

    def look() -> Any:
        nonlocal looks
        looks = next(count)
        sign = next(script)
        if isinstance(sign, Exception):
            raise sign
        return sign

    standby.watch(look, patience_s=patience_s, stop=Event(), now_s=lambda: float(looks))
    return looks


def test_tables_without_an_owner_are_free_at_once() -> None:
    assert looks_until_turn(then=None) == 1


def test_owner_whose_clock_is_an_hour_off_is_not_taken_for_gone() -> None:
    behind, ahead = ([beat(at_ms + second) for second in range(20)] for at_ms in (-HOUR_MS, HOUR_MS))

    assert looks_until_turn(*behind, *ahead, then=None) == 41


def test_owner_is_gone_when_its_sign_has_not_changed_for_the_patience() -> None:
    assert looks_until_turn(beat(1), then=beat(2), patience_s=3) == 2 + 4


def test_owner_that_stops_is_followed_at_once() -> None:
    assert looks_until_turn(beat(1), beat(2), then=None) == 3


def test_sign_that_cannot_be_seen_is_neither_life_nor_death() -> None:
    lost = StoreError("stale file handle")

    assert looks_until_turn(beat(1), lost, lost, beat(2), lost, then=None) == 6
    assert looks_until_turn(beat(1), then=lost, patience_s=3) == 1 + 4


def test_time_in_which_the_standby_itself_was_frozen_does_not_count() -> None:
    clock = iter([0.0, 1.0, 2.0, 1_000.0, 1_001.0, 1_002.0])
    signs = iter([beat(1), beat(1), beat(1), beat(2), None])

    standby.watch(lambda: next(signs), patience_s=60, stop=Event(), now_s=lambda: next(clock))

    assert next(signs, "used up") == "used up"


def test_stop_ends_the_waiting() -> None:
    stop = Event()

    def look() -> Beat:
        stop.set()
        return beat(1)

    standby.watch(look, patience_s=60, stop=stop)


def config_at(root: Path | str) -> Config:
    return Config(tables=TablesConfig(root=str(root)))


def test_standby_claims_tables_that_their_owner_has_left(tmp_path: Path) -> None:
    with Heartbeat(str(tmp_path), {}) as owner:
        owner.begin("owner", 7)
    with Heartbeat(str(tmp_path), {}) as own:
        standby.wait_for_turn(config_at(tmp_path), own, Event())
        claimed = heartbeat.read(str(tmp_path), {})

    assert claimed is not None
    assert (claimed.term, claimed.is_stopped) == (7, False)
    assert claimed.owner != "owner"


def test_standby_whose_claim_was_replaced_goes_on_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop, claims = Event(), []

    class Overruled(Heartbeat):
        def claim(self, owner: str) -> None:
            claims.append(owner)
            super().claim(owner)
            Heartbeat(str(tmp_path), {}).claim("other")

    monkeypatch.setattr(standby, "PATIENCE_S", 0.1)
    monkeypatch.setattr(stop, "wait", lambda _s: stop.set() if len(claims) == 2 else None)

    standby.wait_for_turn(config_at(tmp_path), Overruled(str(tmp_path), {}), stop)

    assert len(claims) == 2


def test_without_beats_the_newest_commit_is_the_sign_of_life(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, Any]] = []
    monkeypatch.setattr(standby, "watch", lambda _look, **more: seen.append(more))

    standby.wait_for_turn(config_at("gs://bucket/lagwise"), Heartbeat("gs://bucket/lagwise", {}), Event())

    assert [more["patience_s"] for more in seen] == [3 * 30 + 600]

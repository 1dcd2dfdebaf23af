import io
from pathlib import Path

import pytest
from rich.console import Console

from pipeline.demo.lines import Lines
from pipeline.demo.live import Screen
from pipeline.demo.live_tables import lag_table
from tests.support.demo_scenes import group, plan, report, share, snapshot


def _console(width: int = 80, height: int = 24) -> tuple[Console, io.StringIO]:
    text = io.StringIO()
    return Console(file=text, width=width, height=height, force_terminal=True, color_system=None), text


def _crowd() -> list[object]:
    members = [share(f"billing-{n}", lag=10**n, status="STALL") for n in range(7)]
    return [
        group(*members),
        group(share(None, partitions=9), group_id="a-group-with-a-very-long-name-indeed"),
    ]


def test_plain_lines_say_a_decision_once_until_it_changes() -> None:
    console, text = _console(width=200)
    lines = Lines(console)

    for decision in ("publish", "publish", "unchanged"):
        lines.show(report(), snapshot(plans=(plan(decision=decision, reason=decision),)))

    said = [line.rstrip() for line in text.getvalue().splitlines() if line.startswith("billing:")]
    assert said == [
        "billing: publish epoch 1: 2 moves, drain 7 min → 50 s (best 40 s)",
        "billing: unchanged epoch 1: unchanged",
    ]


def test_plain_lines_say_why_there_are_no_plans_yet() -> None:
    console, text = _console(width=200)

    Lines(console).show(report(reason="still reading"), snapshot(plans=(plan(decision="abstain"),)))

    assert "no plans yet: still reading" in text.getvalue()
    assert "billing:" not in text.getvalue()


@pytest.mark.parametrize(("width", "height"), [(80, 24), (140, 45)], ids=["small", "large"])
def test_screen_fits_the_terminal(width: int, height: int) -> None:
    console, _ = _console(width, height)
    screen = Screen(console, tables=Path("tables"), log=Path("log"))
    plans = tuple(plan(group_id=f"group-{n % 3}", epoch=n, reason="x" * 300) for n in range(60))

    screen.show(report(), snapshot(*_crowd(), plans=plans))

    drawn = console.render_lines(screen.draw(), pad=False)
    assert len(drawn) <= height
    assert all(sum(part.cell_length for part in line) <= width for line in drawn)


def test_screen_shows_the_newest_decision_of_each_group_before_earlier_plans() -> None:
    console, text = _console(140, 30)
    screen = Screen(console, tables=Path("tables"), log=Path("log"))
    plans = (plan(epoch=1), plan(epoch=2), plan(decision="unchanged", epoch=None, reason="nothing to do"))

    screen.show(report(published=2), snapshot(group(share()), plans=plans))
    console.print(screen.draw())

    shown = text.getvalue()
    assert shown.index("nothing to do") < shown.index("epoch 2") < shown.index("epoch 1")
    assert "published 2" in shown


def test_bars_are_on_one_scale() -> None:
    console, text = _console(100)

    console.print(lag_table([group(share("a", lag=50_000), share("b", lag=25_000), share("c"))]))

    lengths = [line.count("━") for line in text.getvalue().splitlines()[1:]]
    assert lengths[0] > 10
    assert lengths[1] == pytest.approx(lengths[0] / 2, abs=1)
    assert lengths[2] == 0

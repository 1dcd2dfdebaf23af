import io
from pathlib import Path

import pytest
from rich.console import Console

from pipeline.operate.demo.views.lines import Lines
from pipeline.operate.demo.views.live import Screen
from pipeline.operate.demo.views.live_tables import lag_table
from tests.support.job.batches import stamp_of
from tests.support.operate.demo_views import group, move, plan, report, share, snapshot


def _console(width: int = 80, height: int = 24) -> tuple[Console, io.StringIO]:
    text = io.StringIO()
    return Console(file=text, width=width, height=height, force_terminal=True, color_system=None), text


def _crowd() -> list[object]:
    members = [share(f"billing-{n}", lag=10**n, status="STALL") for n in range(7)]
    return [
        *(group(*members, group_id=f"group-{n}") for n in range(3)),
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


def test_plain_lines_say_each_move() -> None:
    console, text = _console(width=200)

    Lines(console).show_moves([move(), move(partition=7, to_client="billing-2", epoch=4)])

    assert [line.rstrip() for line in text.getvalue().splitlines()] == [
        "billing: moved orders-0 billing-1 → billing-4 (epoch 1)",
        "billing: moved orders-7 billing-1 → billing-2 (epoch 4)",
    ]


def test_address_of_the_page_is_a_line_before_the_first_batch_and_stays_below_the_tables() -> None:
    console, text = _console(140, 30)
    screen = Screen(console, tables=Path("tables"), log=Path("log"))

    screen.show_page("http://127.0.0.1:8000")
    before = text.getvalue()
    screen.show(report(), snapshot(group(share())))
    console.print(screen.draw())

    assert "page: http://127.0.0.1:8000" in before
    assert "page http://127.0.0.1:8000  tables tables  log log" in text.getvalue().removeprefix(before)


def test_plain_lines_say_why_there_are_no_plans_yet() -> None:
    console, text = _console(width=200)

    Lines(console).show(
        report(stamp=stamp_of(reason="still reading")), snapshot(plans=(plan(decision="abstain"),))
    )

    assert "no plans yet: still reading" in text.getvalue()
    assert "billing:" not in text.getvalue()


@pytest.mark.parametrize(("width", "height"), [(80, 24), (140, 45)], ids=["small", "large"])
def test_screen_fits_the_terminal(width: int, height: int) -> None:
    console, _ = _console(width, height)
    screen = Screen(console, tables=Path("tables"), log=Path("log"))
    plans = tuple(plan(group_id=f"group-{n % 3}", epoch=n, reason="x" * 300) for n in range(60))

    screen.show(report(), snapshot(*_crowd(), plans=plans))
    screen.show_moves([move(group_id=f"group-{n % 3}", partition=n) for n in range(90)])

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


def test_screen_marks_moves_at_the_members_and_says_them(monkeypatch: pytest.MonkeyPatch) -> None:
    console, text = _console(140, 30)
    now = [100.0]
    monkeypatch.setattr("pipeline.operate.demo.views.live.time.monotonic", lambda: now[0])
    screen = Screen(console, tables=Path("tables"), log=Path("log"))
    members = group(share("billing-1"), share("billing-2"), share("billing-4"))

    screen.show(report(), snapshot(members))
    screen.show_moves([move(), move(partition=1, to_client="billing-2"), move(partition=2)])
    console.print(screen.draw())
    now[0] += 31
    console.print(screen.draw())

    fresh, old = text.getvalue().split("Ctrl-C ends", 1)
    for mark in ("-3 3", "+1 3", "+2 3"):
        assert mark in fresh
        assert mark not in old
    assert "moved 3" in fresh
    assert "orders-0 billing-1 → billing-4, orders-1 billing-1 → billing-2" in old


def test_low_screen_has_a_row_for_each_group_instead_of_each_member() -> None:
    low, high = _console(100, 24), _console(100, 60)

    for console, _ in (low, high):
        screen = Screen(console, tables=Path("tables"), log=Path("log"))
        screen.show(report(), snapshot(*_crowd()))
        console.print(screen.draw())

    assert "7 members" in low[1].getvalue()
    assert "7 members" not in high[1].getvalue()


def test_bars_are_on_one_scale() -> None:
    console, text = _console(100)

    console.print(lag_table([group(share("a", lag=50_000), share("b", lag=25_000), share("c"))]))

    lengths = [line.count("━") for line in text.getvalue().splitlines()[1:]]
    assert lengths[0] > 10
    assert lengths[1] == pytest.approx(lengths[0] / 2, abs=1)
    assert lengths[2] == 0

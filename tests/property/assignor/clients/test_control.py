"""State of the control topic's reader: any bytes, any order, any repetition."""

from hypothesis import given
from hypothesis import strategies as st

from assignor.clients.control import ControlState, Fed
from assignor.protocol import control
from tests.support.bytes_strategies import damaged
from tests.support.followers.follow_plans import CLUSTER, GROUP, plan

KEY = control.encode_key(CLUSTER, GROUP)
MAX_EPOCH = 6


def record(epoch: int, kind: str) -> tuple[bytes | None, list[tuple[str, bytes]]]:
    if kind == "withdrawal":
        return None, control.headers(epoch)
    return control.encode(plan({"a": [0]}, {"a": [0]}, epoch=epoch, dry_run=kind == "dry run")), []


kinds = st.sampled_from(["plan", "dry run", "withdrawal"])
histories = st.lists(kinds, min_size=1, max_size=MAX_EPOCH)


@given(histories, st.data())
def test_newest_epoch_counts_in_any_order_and_repetition(history: list[str], data: st.DataObject) -> None:
    epochs = list(range(1, len(history) + 1))
    repeated = epochs + data.draw(st.lists(st.sampled_from(epochs), max_size=4))
    state = ControlState(cluster=CLUSTER, group=GROUP)

    for epoch in data.draw(st.permutations(repeated)):
        state.feed(KEY, *record(epoch, history[epoch - 1]))

    held = state.plan(0)
    assert state.epoch == len(history)
    assert (held.epoch if held else None) == (len(history) if history[-1] == "plan" else None)


@given(histories, st.data())
def test_withdrawal_of_a_plan_may_overtake_it(history: list[str], data: st.DataObject) -> None:
    newest = len(history)
    feeds = [record(epoch, kind) for epoch, kind in enumerate(history, start=1)]
    state = ControlState(cluster=CLUSTER, group=GROUP)

    for value, headers in data.draw(st.permutations([*feeds, record(newest, "withdrawal")])):
        state.feed(KEY, value, headers)

    assert state.plan(0) is None


keys = st.sampled_from([KEY, None]) | st.binary(max_size=20) | damaged(st.just(KEY))
VALUE = control.encode(plan({"a": [0]}, {"a": [0]}, epoch=2))
values = st.none() | st.binary(max_size=20) | damaged(st.just(VALUE))
headers = st.none() | st.lists(st.tuples(st.just("epoch") | st.text(), st.binary() | st.text() | st.none()))


@given(keys, values, headers)
def test_any_bytes_are_taken_ignored_or_counted(
    key: bytes | None, value: bytes | None, some: list[tuple[str, bytes | str | None]] | None
) -> None:
    state = ControlState(cluster=CLUSTER, group=GROUP)

    fed = state.feed(key, value, some)

    assert state.damaged == (fed is Fed.DAMAGED)
    assert (state.plan(0) is not None) <= (fed is Fed.NEWER)

"""A coordinator that writes what it likes, read in batches of any size: the table is what all records together say."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from assignor.protocol.kafka.consumer_group import MemberState
from tests.support.groups.consumer_group_records import (
    Written,
    current,
    epoch,
    gone,
    metadata,
    regex,
    target,
    target_epoch,
)
from tests.support.groups.consumer_group_table import Groups

SOME = settings(deadline=None, max_examples=40)
MEMBERS = st.sampled_from("abc")
PARTITIONS = st.dictionaries(st.sampled_from("tu"), st.lists(st.integers(0, 3), max_size=3, unique=True))
EPOCHS = st.integers(0, 5)
RECORDS: st.SearchStrategy[Written] = st.one_of(
    st.builds(epoch, EPOCHS),
    st.builds(target_epoch, EPOCHS),
    st.builds(metadata, MEMBERS, st.sampled_from("tu")),
    st.builds(lambda name: metadata(name, topic_regex="t.*"), MEMBERS),
    st.builds(target, MEMBERS, PARTITIONS),
    st.builds(
        lambda name, number, held, pending, state: current(name, number, held, pending=pending, state=state),
        MEMBERS,
        EPOCHS,
        PARTITIONS,
        PARTITIONS,
        st.sampled_from(MemberState),
    ),
    st.builds(regex, st.just("t.*"), st.sampled_from("tu")),
    st.builds(
        lambda record, rest: (record[0], rest), st.builds(current, MEMBERS, EPOCHS), st.binary(max_size=8)
    ),
)
LOGS = st.lists(RECORDS | RECORDS.map(gone), min_size=1, max_size=25)


def rows(groups: Groups) -> list[dict[str, Any]]:
    return list(groups.table.to_pylist(maps_as_pydicts="strict"))


@SOME
@given(log=LOGS, cuts=st.lists(st.integers(0, 25)))
def test_batches_of_any_size_leave_what_one_leaves(log: list[Written], cuts: list[int]) -> None:
    ends = [*sorted(min(cut, len(log)) for cut in cuts), len(log)]
    found, start = Groups(), 0
    for end in ends:
        found.run(*log[start:end], first=start)
        start = end

    assert rows(found) == rows(Groups().run(*log))


@SOME
@given(log=LOGS, cut=st.integers(0, 25), back=st.integers(0, 25))
def test_what_a_start_reads_again_changes_nothing_in_the_end(log: list[Written], cut: int, back: int) -> None:
    cut, found = min(cut, len(log)), Groups()
    found.run(*log[:cut])
    start = max(0, cut - back)

    found.run(*log[start:], first=start)

    assert rows(found) == rows(Groups().run(*log))


@SOME
@given(log=LOGS, cut=st.integers(0, 25))
def test_log_that_is_read_from_its_start_leaves_what_the_first_reading_left(
    log: list[Written], cut: int
) -> None:
    whole, cut = Groups().run(*log), min(cut, len(log))
    again = Groups().run(*log)

    again.run(*log[:cut], first=0, reread=[3], behind=[3])
    again.run(*log[cut:], first=cut)

    assert rows(again) == rows(whole)

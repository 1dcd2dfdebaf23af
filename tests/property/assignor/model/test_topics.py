"""What is dealt out in spread order, with a sort as judge."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from assignor.model.topics import Topics


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=8))
def test_values_are_dealt_out_in_spread_order(drawn: list[tuple[int, bool]]) -> None:
    topics = Topics.of({f"t{number}": count for number, (count, _) in enumerate(drawn)})
    wanted = np.array([is_wanted for _, is_wanted in drawn], np.bool_)
    chosen = np.flatnonzero(topics.by_partition(wanted))
    values = np.arange(len(chosen), dtype=np.int32) + 100

    dealt = topics.dealt(values, wanted)

    expected = np.full(topics.n_partitions, -1, np.int32)
    expected[topics.spread_order(chosen)] = values
    assert dealt is not None
    assert dealt.tolist() == expected.tolist()

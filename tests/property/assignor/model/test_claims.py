"""Claims resolve as KIP-341 says, whatever is claimed."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from assignor.model.claims import ClaimArrays, resolve
from tests.support.assignors import literal_rules

TRIPLES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(-1, 2)), max_size=30)


def claims_of(triples: list[tuple[int, int, int]]) -> ClaimArrays:
    columns = np.array(triples, np.int64).reshape(-1, 3).T
    return ClaimArrays(
        partition=columns[0], member=columns[1].astype(np.int32), generation=columns[2].astype(np.int32)
    )


@given(TRIPLES)
def test_resolution_equals_the_rule_claim_by_claim(triples: list[tuple[int, int, int]]) -> None:
    ownership = resolve(claims_of(triples), n_partitions=6)

    holder, contested = literal_rules.resolve(triples, 6)
    assert ownership.holder.tolist() == holder
    assert ownership.contested.tolist() == contested


@given(TRIPLES)
def test_order_of_claims_does_not_matter(triples: list[tuple[int, int, int]]) -> None:
    forward = resolve(claims_of(triples), n_partitions=6)
    backward = resolve(claims_of(triples[::-1]), n_partitions=6)

    assert forward.holder.tolist() == backward.holder.tolist()
    assert forward.contested.tolist() == backward.contested.tolist()

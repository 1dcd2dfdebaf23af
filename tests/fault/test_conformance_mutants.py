"""The conformance kit names each deviation that needs a broker to be seen by the rule that it breaks.

Those that a group in memory shows: `tests/unit/test_conformance_mutants.py`. A few are judged at the same time: what a trial does most is to wait.
"""

from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from pipeline.local.embedded.broker import EmbeddedBroker
from tests.support.conformance.conformance_mutants import MUTANTS, Mutant
from tests.support.conformance.conformance_runs import python_follower, unkept

_AT_ONCE = 4
# What becomes of an aborted transaction is for a broker to say, though the group in memory has its word for it.
CHOSEN = [mutant for mutant in MUTANTS if mutant.needs_broker or "reads-aborted" in mutant.names]


@pytest.fixture(scope="module")
def unkept_by(
    broker: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Mapping[str, Future[dict[str, str]]]]:
    # No others than the run has chosen.
    chosen = [
        item.callspec.params["mutant"]
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.module is request.module
    ]
    folder = tmp_path_factory.mktemp("mutants")
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        yield {
            one.title: pool.submit(
                unkept,
                broker.bootstrap_servers,
                folder / one.title.replace(" ", "-"),
                python_follower(*one.follower, *one.names),
                one.rules(),
            )
            for one in chosen
        }


@pytest.mark.parametrize("mutant", CHOSEN, ids=lambda mutant: mutant.title)
def test_deviation_is_named_by_the_rule_that_it_breaks_and_by_no_other(
    unkept_by: Mapping[str, Future[dict[str, str]]], mutant: Mutant
) -> None:
    found = unkept_by[mutant.title].result()

    assert mutant.caught_by in found
    assert all(
        mutant.caught_by == sentence or any(part in sentence for part in mutant.besides) for sentence in found
    ), found

"""Fifty followers with a thousand partitions on one small machine: a plan goes through, and nobody's session ends."""

import logging
from collections import Counter

from pipeline.local.embedded.broker import EmbeddedBroker
from tests.support.followers.follow_crowd import SESSION_MS, Crowd, all_moved, few_moved

log = logging.getLogger(__name__)

MEMBERS = 50
PARTITIONS = 1000


def test_fifty_members_with_a_thousand_partitions_follow_without_a_session_timeout(
    broker: EmbeddedBroker,
) -> None:
    with Crowd(broker.bootstrap_servers, "crowd", members=MEMBERS, partitions=PARTITIONS) as crowd:
        base = crowd.base()
        generation = crowd.generation

        few_s = crowd.apply(base, few_moved(base, percent=5), within_s=SESSION_MS / 1000)
        few = crowd.held()
        all_s = crowd.apply(base, all_moved(base), within_s=60)
        every = crowd.held()

        log.info("applied by all: 5 percent after %.2f s, all after %.2f s", few_s, all_s)
        assert few == few_moved(base, percent=5)
        assert every == all_moved(base)
        assert Counter(number for held in every.values() for number in held).most_common(1)[0][1] == 1
        assert (crowd.generation, crowd.losses) == (generation, 0)

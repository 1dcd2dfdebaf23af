"""Real members under the plug-ins, killed and stopped while their group applies one plan after the other."""

import signal
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from assignor.strategies.catalogue import RebalanceProtocol
from pipeline.local.embedded.broker import EmbeddedBroker
from tests.support.followers.follow_hurts import Plans, hurt_in_turn
from tests.support.followers.follow_processes import Processes
from tests.support.waiting import wait_until

MODULE = "tests.support.followers.plugin_process"
EAGER = {"client": "kafka-python", "protocol": RebalanceProtocol.EAGER}
COOPERATIVE = {"client": "kafka-python", "protocol": RebalanceProtocol.COOPERATIVE}
AIOKAFKA = {"client": "aiokafka"}

HURTS = ("kill", "stop", "zombie") * 3


def halt(processes: Processes, who: str, what: str) -> None:
    processes.send(who, signal.SIGUSR2 if what == "zombie" else signal.SIGSTOP)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(EAGER, id="kafka-python-eager"),
        pytest.param(COOPERATIVE, id="kafka-python-cooperative"),
        pytest.param(AIOKAFKA, id="aiokafka"),
    ],
)
def test_group_whose_members_are_killed_between_plans_loses_nothing_and_has_one_owner(
    broker: EmbeddedBroker, tmp_path: Path, request: pytest.FixtureRequest, options: Mapping[str, Any]
) -> None:
    name = request.node.callspec.id
    with Processes(broker.bootstrap_servers, name, tmp_path, partitions=8, module=MODULE) as processes:
        stale = hurt_in_turn(
            processes, hurts=HURTS, halt=halt, options={**options, "cluster": processes.cluster}
        )

        assert len(stale) >= HURTS.count("zombie")
        assert not any(line["accepted"] for line in stale)
        assert processes.missing() == []
        assert processes.overlaps() == []


def test_judge_sees_the_second_owner_when_a_member_does_not_say_what_it_still_reads(
    broker: EmbeddedBroker, tmp_path: Path
) -> None:
    with Processes(broker.bootstrap_servers, "silent", tmp_path, partitions=8, module=MODULE) as processes:
        for who in "abc":
            processes.start(who, **COOPERATIVE, cluster=processes.cluster, silent="yes")
        plans = Plans(processes, Random(5))

        wait_until(lambda: plans.publish(3) and processes.overlaps(), what="a second owner", within_s=60)

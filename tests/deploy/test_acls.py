"""The lines for Kafka's own commands: they give the rights that were tested one by one, and no other."""

import re
import shlex
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
)

from pipeline.config.model import ControlConfig
from tests.deploy.chart import ROOT
from tests.integration.test_rights import CONTROL, GHOST, OPTIONAL, REQUIRED, WATCHED
from tests.support.brokers.kafka_tools import java_of_tools
from tests.support.brokers.secured import Right, Secured, secured_broker
from tests.support.operate.page_rights import rights_of

_PAGE = (ROOT / "deploy" / "docs" / "deploying-security.md").read_text(encoding="utf-8")
_CLASSES = {
    "kafka-acls.sh": "org.apache.kafka.tools.AclCommand",
    "kafka-topics.sh": "org.apache.kafka.tools.TopicCommand",
}
_OWN = ControlConfig()
_NAMES = {
    CONTROL.topic: _OWN.topic,
    CONTROL.acks_topic: _OWN.acks_topic,
    CONTROL.commands_topic: _OWN.commands_topic,
    WATCHED: "*",
    GHOST: "*",
    "lagwise-*": "lagwise-",
}


@pytest.fixture(scope="module")
def ruled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A broker on which somebody has typed every line of the page."""
    with secured_broker(tmp_path_factory.mktemp("acls")) as broker:
        lines = re.findall(r"^    (kafka-(?:acls|topics)\.sh .+)$", _PAGE, re.MULTILINE)
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda line: typed(line, broker.open_servers), lines))
        yield broker


def typed(line: str, servers: str) -> None:
    """Run a line as it stands, but for where the broker is and how many there are."""
    program, *words = shlex.split(line.replace("--replication-factor 3", "--replication-factor 1"))
    words[words.index("--bootstrap-server") + 1] = servers
    at = words.index("--command-config")
    del words[at : at + 2]
    java = [*java_of_tools(), "-XX:TieredStopAtLevel=1"]
    done = subprocess.run([*java, _CLASSES[program], *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"


def given(broker: Secured, user: str) -> set[tuple[Right, ResourcePatternType]]:
    anything = AclBindingFilter(
        ResourceType.ANY,
        None,
        ResourcePatternType.ANY,
        f"User:{user}",
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    found = broker.admin.describe_acls(anything).result(timeout=10)
    assert {(one.host, one.permission_type) for one in found} == {("*", AclPermissionType.ALLOW)}
    return {((one.operation, one.restype, one.name), one.resource_pattern_type) for one in found}


def test_job_gets_the_rights_that_were_tried_and_no_other(ruled: Secured) -> None:
    wanted = {
        (
            (operation, kind, _NAMES.get(name, name)),
            ResourcePatternType.PREFIXED if name == "lagwise-*" else ResourcePatternType.LITERAL,
        )
        for operation, kind, name in (*REQUIRED.values(), *OPTIONAL.values())
    }
    every = ((AclOperation.DESCRIBE_CONFIGS, ResourceType.TOPIC, "*"), ResourcePatternType.LITERAL)
    of_some = {one for one in wanted if one[0][:2] == every[0][:2]}

    tenants = {
        ((AclOperation.READ, ResourceType.TOPIC, f"{who}.acks"), ResourcePatternType.LITERAL)
        for who in ("shop", "bank")
    }
    # *DescribeConfigs* on all topics is that on the four.
    assert given(ruled, "lagwise") == wanted - of_some | {every} | tenants


def test_who_gives_orders_may_write_there_and_nowhere_else(ruled: Secured) -> None:
    writes = {right for right, _ in given(ruled, "operator") if right[0] is AclOperation.WRITE}

    assert writes == {
        (AclOperation.WRITE, ResourceType.TOPIC, _OWN.commands_topic),
        (AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, "lagwise-CLUSTER:orders"),
    }


def test_who_follows_gets_what_the_followers_of_the_tests_have_and_no_more(ruled: Secured) -> None:
    same = {name: name for name in ("billing", "invoices", _OWN.topic, _OWN.acks_topic)}

    assert {right for right, _ in given(ruled, "billing")} == set(rights_of("billing", same))


@pytest.mark.parametrize("who", ["shop", "bank"])
def test_tenant_gets_what_a_follower_needs_for_its_own_groups_and_no_more(ruled: Secured, who: str) -> None:
    literal, prefixed = ResourcePatternType.LITERAL, ResourcePatternType.PREFIXED
    read, write, topic = AclOperation.READ, AclOperation.WRITE, ResourceType.TOPIC

    assert given(ruled, who) == {
        ((read, ResourceType.GROUP, f"{who}-"), prefixed),
        ((read, topic, f"{who}-"), prefixed),
        ((read, topic, _OWN.topic), literal),
        ((read, topic, f"{who}.acks"), literal),
        ((write, topic, f"{who}.acks"), literal),
    }


def test_topics_are_those_that_lagwise_would_make(ruled: Secured) -> None:
    def settings(topic: str) -> dict[str, str]:
        asked = ruled.admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)])
        (found,) = [future.result(timeout=10) for future in asked.values()]
        return {
            name: str(found[name].value)
            for name in ("cleanup.policy", "retention.ms", "message.timestamp.type")
        }

    for topic in (_OWN.topic, _OWN.commands_topic):
        assert settings(topic)["cleanup.policy"] == "compact"
    for topic in (_OWN.acks_topic, "shop.acks", "bank.acks"):
        assert settings(topic) == {
            "cleanup.policy": "compact,delete",
            "retention.ms": str(90 * 86_400_000),
            "message.timestamp.type": "LogAppendTime",
        }

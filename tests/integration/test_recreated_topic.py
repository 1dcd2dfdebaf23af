"""A topic that is deleted and created again: commits on the old one are not compared with the new one's log.

The coordinator does not know of forged commits, so it deletes none with the topic: they stay, as a commit does whose
tombstone cannot be read, or that came in while the topic was being deleted.
"""

import base64
from pathlib import Path

from confluent_kafka import KafkaError, KafkaException, TopicCollection

from pipeline.local.embedded.broker import EmbeddedBroker
from tests.support.brokers.broker import admin_client, create_topics, produce
from tests.support.brokers.inject import commit_record, inject
from tests.support.groups.group_records import group_record, member
from tests.support.job.job import RunningJob, job_config, running
from tests.support.waiting import wait_until

TOPIC = "made-twice"
BY_ID, BY_NAME = "commits-by-id", "commits-by-name"
SHOWN = ("committed_offset", "log_end_offset", "lag", "status")


def topic_id(bootstrap: str) -> bytes:
    admin = admin_client(bootstrap)
    described = admin.describe_topics(TopicCollection([TOPIC]))[TOPIC].result()
    return base64.b64decode(f"{described.topic_id}==")


def make_again(bootstrap: str) -> None:
    admin = admin_client(bootstrap)
    admin.delete_topics([TOPIC])[TOPIC].result()

    def is_made() -> bool:
        try:
            create_topics(bootstrap, {TOPIC: 1})
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise
            return False
        return True

    wait_until(is_made, what="the topic under its old name")


def shown(job: RunningJob, group: str) -> tuple[object, ...]:
    row = job.lags(group).get((TOPIC, 0), {})
    return tuple(row.get(name) for name in SHOWN)


def wait_for_lags(job: RunningJob, figures: tuple[int, int, int]) -> None:
    job.wait(
        lambda: all(shown(job, group)[:3] == figures for group in (BY_ID, BY_NAME)),
        what=f"committed offset, log end and lag {figures} of both groups",
    )


def test_commits_on_the_old_topic_have_no_lag_and_no_plan_until_the_group_commits_again(
    forged_broker: EmbeddedBroker, tmp_path: Path
) -> None:
    bootstrap = forged_broker.bootstrap_servers
    create_topics(bootstrap, {TOPIC: 1})
    produce(bootstrap, TOPIC, {0: 10})
    old_id = topic_id(bootstrap)
    reader = member("reader", TOPIC, assigned={TOPIC: (0,)})
    by_id = [group_record(BY_ID, reader), commit_record(BY_ID, TOPIC, 0, 4, topic_id=old_id)]
    inject(bootstrap, [*by_id, commit_record(BY_NAME, TOPIC, 0, 4)])

    with running(job_config(bootstrap, tmp_path / "tables")) as job:
        wait_for_lags(job, (4, 10, 6))
        make_again(bootstrap)
        produce(bootstrap, TOPIC, {0: 7})
        new_id = topic_id(bootstrap)
        job.wait(
            lambda: (
                {row["log_end_offset"] for row in job.rows("topic_offsets") if row["topic"] == TOPIC} == {7}
            ),
            what="the new log",
        )
        job.wait_for_batches()

        assert [shown(job, group) for group in (BY_ID, BY_NAME)] == [(4, None, None, "UNKNOWN")] * 2
        assert "deleted topic of the same name" in job.last_decision(BY_ID)["reason"]

        again = [commit_record(BY_ID, TOPIC, 0, 5, topic_id=new_id), commit_record(BY_NAME, TOPIC, 0, 5)]
        inject(bootstrap, again)
        wait_for_lags(job, (5, 7, 2))
        # A commit of the old topic that is late comes in after those of the new one.
        inject(bootstrap, [commit_record(BY_ID, TOPIC, 0, 3, topic_id=old_id)])
        job.wait(lambda: shown(job, BY_ID) == (3, None, None, "UNKNOWN"), what="the late commit")
        assert shown(job, BY_NAME)[2] == 2

"""A driver as a container has it, between a broker and an end: `python -m tests.deploy.contained PROGRAM CACHE TABLES`.

To be started in namespaces of its own, with a root file system that is read-only but for /tmp and the tables.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from tests.support.brokers.broker import create_topics, produce, small_broker

USER = 65534
"""`nobody`: like the user of the image it has a name, and owns nothing."""
_NOTHING = ["--clear-groups", "--no-new-privs", "--inh-caps=-all", "--bounding-set=-all"]
_CONFIG = """
[kafka.properties]
"bootstrap.servers" = "{servers}"
[tables]
root = "{tables}"
"""


def main(program: str, cache: str, tables: str) -> int:
    """Run once over a group with lag; the exit status of the driver."""
    with small_broker() as broker:
        create_topics(broker.bootstrap_servers, {"invoices": 1})
        produce(broker.bootstrap_servers, "invoices", {0: 30})
        _commit(broker.bootstrap_servers, TopicPartition("invoices", 0, 10))
        config = Path(tempfile.gettempdir(), "lagwise.toml")
        config.write_text(_CONFIG.format(servers=broker.bootstrap_servers, tables=tables), encoding="utf-8")
        command = ["setpriv", f"--reuid={USER}", f"--regid={USER}", *_NOTHING, program, "run", "--once"]
        env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "XDG_CACHE_HOME": cache}
        done = subprocess.run(
            command, cwd=config.parent, env=env | {"LAGWISE_CONFIG": str(config)}, check=False, timeout=240
        )
    return done.returncode


def _commit(servers: str, offset: TopicPartition) -> None:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "billing", "log_level": 0})
    consumer.commit(offsets=[offset], asynchronous=False)
    consumer.close()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

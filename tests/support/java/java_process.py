"""One of the consumer `Processes`, in Java: python -m tests.support.java.java_process '{"who":"a", "command":["java", …], …}'.

Options: `command`, what runs `Members.java`; `assignor`, a class; `copies_to`, a topic for copies in transactions, or
nothing; `plain` for no follower; `config` for its consumer, where null takes a property away. The plans name the cluster by Kafka's id of it. It becomes the Java process, so its process id stays. SIGTERM
ends it. SIGHUP makes it stop itself before its next commit.
"""

import json
import os
import signal
import sys
from typing import Any

OPTIONS: dict[str, Any] = json.loads(sys.argv[1])

config = {
    "bootstrap.servers": OPTIONS["bootstrap"],
    "group.id": OPTIONS["group"],
    "client.id": OPTIONS["who"],
    "partition.assignment.strategy": OPTIONS.get("assignor"),
    "enable.auto.commit": "false",
    "auto.offset.reset": "earliest",
    "session.timeout.ms": "3000",
    "heartbeat.interval.ms": "300",
    "lagwise.control.topic": OPTIONS["control"],
    "lagwise.acks.topic": OPTIONS["acks"],
    **OPTIONS["config"],
}
start = {
    "who": OPTIONS["who"],
    "following": "plain" not in OPTIONS,
    "copies_to": OPTIONS.get("copies_to"),
    "topics": {OPTIONS["topic"]: ""},
    "config": {name: value for name, value in config.items() if value is not None},
}
# A JVM does not hear what was ignored when it started, as nohup makes it.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
command = [*OPTIONS["command"], json.dumps(start), OPTIONS["log"]]
os.execvp(command[0], command)  # noqa: S606 - no shell is wanted

"""What a broker has counted so far, by its own metrics: requests by kind, and bytes sent by topic. Kafka's JmxTool asks."""

import os
import re
import subprocess
from collections import Counter
from dataclasses import dataclass
from unittest.mock import patch

from pipeline.local.embedded.broker import EmbeddedBroker
from pipeline.local.embedded.config import free_port
from tests.support.brokers.kafka_tools import java_of_tools

_OPTIONS = "JDK_JAVA_OPTIONS"
_REQUESTS = "kafka.network:type=RequestMetrics,name=RequestsPerSec,*"
_BYTES = "kafka.server:type=BrokerTopicMetrics,name=BytesOutPerSec,*"
_LINE = re.compile(r"(?:request|topic)=(?P<name>[^,:]+).*?Count=(?P<count>\d+)$")
_TIMEOUT_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Since the broker's start, or between two moments."""

    requests: Counter[str]
    """By the name of the request, over its versions."""
    bytes_out: Counter[str]
    """Bytes of records that were sent to clients, by topic."""

    def since(self, before: "Counts") -> "Counts":
        """What came between."""
        return Counts(requests=self.requests - before.requests, bytes_out=self.bytes_out - before.bytes_out)


def start_counted(broker: EmbeddedBroker) -> int:
    """Start the broker, and return the port on which its counters can be asked for."""
    port = free_port()
    of_jmx = {
        "port": str(port),
        "rmi.port": str(port),
        "authenticate": "false",
        "ssl": "false",
        "host": "127.0.0.1",
    }
    options = [
        *os.environ.get(_OPTIONS, "").split(),
        "-Djava.rmi.server.hostname=127.0.0.1",
        *(f"-Dcom.sun.management.jmxremote.{name}={value}" for name, value in of_jmx.items()),
    ]
    # Whatever else runs Java later would take the same port.
    with patch.dict(os.environ, {_OPTIONS: " ".join(options)}):
        broker.start()
    return port


def counts(port: int) -> Counts:
    """What the broker has counted so far."""
    command = [
        *java_of_tools(),
        *("org.apache.kafka.tools.JmxTool", "--one-time", "--report-format", "properties"),
        *("--jmx-url", f"service:jmx:rmi:///jndi/rmi://127.0.0.1:{port}/jmxrmi"),
        *("--attributes", "Count", "--object-name", _REQUESTS, "--object-name", _BYTES),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr
    found = Counts(requests=Counter(), bytes_out=Counter())
    for line in done.stdout.splitlines():
        match = _LINE.search(line)
        if match:
            counter = found.requests if "RequestMetrics" in line else found.bytes_out
            counter[match["name"]] += int(match["count"])
    assert found.requests, done.stdout
    return found

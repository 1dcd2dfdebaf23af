"""Folders of new brokers as Kafka's StorageTool formats them: by the tool once for each kind of node, then by a copy.

The tool is a Java process of a second, and a run of the tests starts a hundred brokers. A copy has ids of its own.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from unittest.mock import patch

from pipeline.local.embedded.node import KafkaNode, new_cluster_id

_OF_ONE_NODE = (
    "advertised.listeners",
    "controller.quorum.voters",
    "listeners",
    "log.dirs",
    "node.id",
)
"""Properties that the tool puts into `meta.properties` or nowhere; nodes that differ in no other are of one kind."""
_IDS = "meta.properties"


@contextmanager
def formatted_once() -> Iterator[None]:
    """Nodes that this process formats within the block are copies of the first one of their kind."""
    by_tool = KafkaNode._format
    done: dict[tuple[str, ...], Path] = {}
    lock = Lock()

    def format_node(node: KafkaNode, cluster_id: str) -> None:
        # The nodes of a cluster start at the same time.
        with lock:
            kind = _kind(node)
            if kind not in done:
                by_tool(node, cluster_id)
                done[kind] = Path(shutil.copytree(_data(node), folder / str(len(done))))
                return
        _copy(done[kind], node, cluster_id)

    with tempfile.TemporaryDirectory() as name, patch.object(KafkaNode, "_format", format_node):
        folder = Path(name)
        yield


def _kind(node: KafkaNode) -> tuple[str, ...]:
    """Java, Kafka's jars, and the properties that may differ between two kinds of nodes."""
    lines = node._properties_file.read_text(encoding="utf-8").splitlines()
    return (*node._java(), *(line for line in lines if line.partition("=")[0] not in _OF_ONE_NODE))


def _copy(model: Path, node: KafkaNode, cluster_id: str) -> None:
    shutil.copytree(model, _data(node), dirs_exist_ok=True)
    properties = node._properties_file.read_text(encoding="utf-8").splitlines()
    (node_id,) = (line.partition("=")[2] for line in properties if line.startswith("node.id="))
    own = {"cluster.id": cluster_id, "directory.id": new_cluster_id(), "node.id": node_id}
    ids = (_data(node) / _IDS).read_text(encoding="utf-8").splitlines()
    kept = [line for line in ids if line.partition("=")[0] not in own]
    text = "".join(f"{line}\n" for line in (*kept, *(f"{name}={value}" for name, value in own.items())))
    (_data(node) / _IDS).write_text(text, encoding="utf-8")


def _data(node: KafkaNode) -> Path:
    return node.data_dir / "kafka"

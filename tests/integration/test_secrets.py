"""A secret given to the job reaches Kafka's clients, and nothing that anybody reads."""

import os
import subprocess
import sys
from pathlib import Path

from pipeline.embedded import EmbeddedBroker
from tests.support.inject import commit_record, inject

_SECRET = "mark-7f3a-of-a-secret"  # noqa: S105 - it opens nothing
_CONFIG = """
[kafka.properties]
"bootstrap.servers" = "{bootstrap}"
"ssl.key.password" = "env:LAGWISE_TEST_SECRET"
"debug" = "conf"
[tables]
root = "{root}"
[plan]
interval_s = 1
[spark]
"spark.hadoop.fs.s3a.secret.key" = "env:LAGWISE_TEST_SECRET"
"""


def test_secret_is_in_no_line_table_or_checkpoint(forged_broker: EmbeddedBroker, tmp_path: Path) -> None:
    root = tmp_path / "tables"
    inject(forged_broker.bootstrap_servers, [commit_record("keeps-secrets", "no-topic", 0, 1)])
    config = tmp_path / "lagwise.toml"
    config.write_text(_CONFIG.format(bootstrap=forged_broker.bootstrap_servers, root=root), encoding="utf-8")

    done = subprocess.run(
        [sys.executable, "-m", "pipeline.main", "--config", str(config), "--once"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=Path(__file__).parents[2],
        env=os.environ | {"LAGWISE_TEST_SECRET": _SECRET},
    )

    assert done.returncode == 0, done.stderr
    assert _SECRET not in done.stdout + done.stderr
    files = [file for file in root.rglob("*") if file.is_file()]
    assert any("_checkpoint" in file.parts for file in files)
    assert [file for file in files if _SECRET.encode() in file.read_bytes()] == []

"""Where tables may be: every process that writes them has to find the same ones there."""

import re

from pipeline.config.model import TablesConfig
from pipeline.errors import ConfigError

_UNSAFE = ("allow_unsafe_rename", "copy_if_not_exists")
_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]+):")


def check_places(tables: TablesConfig, *, master: str, ships_code: bool) -> None:
    """Refuse what a driver of this `spark.master` could start with, and would then do damage or fail.

    Args:
        tables: Of the configuration.
        master: Spark's.
        ships_code: Whether the driver was started so that executors get its code.

    Raises:
        ConfigError: It is refused; the message has the reason.
    """
    is_folder = is_folder_of_host(tables.root)
    if is_s3(tables.root):
        _check_s3(tables)
    elif not is_folder and not tables.object_store:
        raise ConfigError(
            f"tables.root: {tables.root} is no folder, and lagwise was not tried on other stores: the store alone "
            "keeps a second driver out, and a standby sees no sign of life; to use it all the same, set "
            "tables.object_store = true"
        )
    if is_local(master):
        return
    if not ships_code:
        raise ConfigError(
            f"spark.master: {master} has executors without the code of lagwise; start with deploy/submit.sh, "
            "which ships it"
        )
    if is_folder and not tables.shared:
        raise ConfigError(
            f"tables.root: executors of {master} would write to {tables.root} of their own hosts; mount one folder "
            "there on every host, and set tables.shared = true"
        )


def _check_s3(tables: TablesConfig) -> None:
    if not is_folder_of_host(tables.checkpoint_path):
        raise ConfigError(
            f"tables.checkpoint: with tables at {tables.root}, name a folder on the driver's own disk; it only numbers "
            "batches and may be lost"
        )
    if unsafe := [name for name in tables.storage_options if name.lower().endswith(_UNSAFE)]:
        raise ConfigError(
            f"tables.storage_options.{unsafe[0]}: lets a second driver overwrite a commit; remove it. The store has to "
            "know conditional puts (If-None-Match), as S3 does since 2024"
        )
    if tables.catalog:
        raise ConfigError(
            f"tables.catalog: Spark cannot read {tables.root} without Hadoop's S3 client; leave tables.catalog out"
        )


def is_s3(root: str) -> bool:
    """Whether this is a bucket of S3, or of a store that speaks its protocol."""
    return root.startswith(("s3://", "s3a://"))


def is_folder_of_host(root: str) -> bool:
    """Whether this is a path, which each host looks up by itself."""
    scheme = _SCHEME.match(root)
    return scheme is None or scheme[1].lower() == "file"


def is_local(master: str) -> bool:
    """Whether Spark's executors are threads of the driver."""
    return master == "local" or master.startswith("local[")

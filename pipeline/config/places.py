"""Valid locations of tables: every process that writes them has to find the same ones there."""

import re

from pipeline.config.model import TablesConfig
from pipeline.errors import ConfigError

_S3_ROOT = re.compile(r"s3a?://[a-z0-9][a-z0-9.-]+(/[A-Za-z0-9._-]+)*/?")
_S3_OPTIONS = frozenset(
    {"access_key_id", "secret_access_key", "session_token", "region", "endpoint_url", "allow_http"}
)
"""Options for both delta-rs, which commits, and Arrow, which writes files (`tables.filesystem`)."""
_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]+):")


def check_places(tables: TablesConfig, *, master: str, ships_code: bool) -> None:
    """Refuse locations with which a driver of this `spark.master` would start, and then fail or do damage.

    Args:
        tables: Table of the configuration.
        master: Spark's master.
        ships_code: Whether executors get the code of the driver.

    Raises:
        ConfigError: The location is refused; the message has the reason.
    """
    is_folder = is_folder_of_host(tables.root)
    if is_s3(tables.root):
        _check_s3(tables)
    elif not is_folder and not tables.object_store:
        raise ConfigError(
            f"tables.root: {tables.root} is not a local folder, and lagwise was not tried on other stores: only the "
            "store keeps a second driver out, and a standby sees no heartbeat; to use it anyway, set "
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
            f"tables.root: executors of {master} would write to {tables.root} on their own hosts; mount one shared "
            "folder there on every host, and set tables.shared = true"
        )


def _check_s3(tables: TablesConfig) -> None:
    if not is_folder_of_host(tables.checkpoint_path):
        raise ConfigError(
            f"tables.checkpoint: with tables at {tables.root}, name a folder on the driver's own disk; it only "
            "numbers batches and may be lost"
        )
    if not _S3_ROOT.fullmatch(tables.root):
        raise ConfigError(
            f"tables.root: {tables.root} cannot be used: write s3:// in small letters, a bucket, and a path of "
            "letters, digits, dots, dashes and underscores"
        )
    given = {s3_option(name): name for name in tables.storage_options}
    if unknown := [name for short, name in given.items() if short not in _S3_OPTIONS]:
        raise ConfigError(
            f"tables.storage_options: {unknown[0]} applies to the commits of the tables but not to their files; "
            "remove it, and set up the driver's environment or profile instead. lagwise takes "
            f"{', '.join(sorted(_S3_OPTIONS))}"
        )
    if ("access_key_id" in given) != ("secret_access_key" in given):
        raise ConfigError(
            "tables.storage_options: an access key has two parts; give AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
            "or neither"
        )
    if tables.catalog:
        raise ConfigError(
            f"tables.catalog: Spark cannot read {tables.root} without Hadoop's S3 client; leave tables.catalog out"
        )


def s3_option(name: str) -> str:
    """The name in `_S3_OPTIONS` of an option: delta-rs takes either case, with `AWS_` or without."""
    return name.lower().removeprefix("aws_")


def is_s3(root: str) -> bool:
    """Whether this is a bucket of S3, or of a store with the same protocol."""
    return root.lower().startswith(("s3://", "s3a://"))


def is_folder_of_host(root: str) -> bool:
    """Whether this is a path, which each host resolves by itself."""
    scheme = _SCHEME.match(root)
    return scheme is None or scheme[1].lower() == "file"


def is_local(master: str) -> bool:
    """Whether Spark's executors are threads of the driver."""
    return master == "local" or master.startswith("local[")

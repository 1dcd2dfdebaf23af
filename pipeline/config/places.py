"""Valid locations of tables: every process that writes them has to find the same ones there."""

import re
from pathlib import Path

from pipeline.config.model import TablesConfig
from pipeline.config.object_stores import ObjectStore, store_of
from pipeline.errors import ConfigError

_NOT_IN_PATHS = frozenset("[]{}^|%*?#\\\x7f").union(map(chr, range(32)))
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
    _check_path(tables.root)
    is_folder = is_folder_of_host(tables.root)
    store = store_of(tables.root)
    if store is not None:
        _check_store(tables, store)
    elif not is_folder and not tables.object_store:
        raise ConfigError(
            f"tables.root: {tables.root} is not a local folder, and lagwise has not been tried on other stores: only "
            "the store keeps a second driver out, and a standby sees no heartbeat; to use it anyway, set "
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


def _check_path(root: str) -> None:
    # delta-rs or Spark takes these for something else: an address, a pattern, a character in another writing.
    path = root if "://" in root else str(Path(root).absolute())
    if found := sorted(_NOT_IN_PATHS & set(path)):
        raise ConfigError(
            f"tables.root: {_printable(root)} cannot be used: its path contains {_printable(' '.join(found))}; point "
            "tables.root at another one"
        )


def _printable(text: str) -> str:
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


def _check_store(tables: TablesConfig, store: ObjectStore) -> None:
    if not is_folder_of_host(tables.checkpoint_path):
        raise ConfigError(
            f"tables.checkpoint: with tables at {tables.root}, name a folder on the driver's own disk; it only "
            "numbers batches and may be lost"
        )
    if not store.root.fullmatch(tables.root):
        raise ConfigError(
            f"tables.root: {tables.root} cannot be used: write {store.written_as}, and a path of "
            "letters, digits, dots, dashes and underscores"
        )
    if unknown := store.unknown(tables.storage_options):
        raise ConfigError(
            f"tables.storage_options: {unknown[0]} applies to the commits of the tables but not to their files; "
            "remove it, and set up the driver's environment or profile instead. lagwise takes "
            f"{', '.join(sorted(store.options))}"
        )
    given = store.given(tables.storage_options)
    if ("access_key_id" in given) != ("secret_access_key" in given):
        raise ConfigError(
            "tables.storage_options: an access key has two parts; give AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
            "or neither"
        )
    if tables.catalog:
        raise ConfigError(
            f"tables.catalog: Spark cannot read {tables.root} without {store.hadoop}; leave tables.catalog out"
        )


def is_folder_of_host(root: str) -> bool:
    """Whether this is a path, which each host resolves by itself."""
    scheme = _SCHEME.match(root)
    return scheme is None or scheme[1].lower() == "file"


def is_local(master: str) -> bool:
    """Whether Spark's executors are threads of the driver."""
    return master == "local" or master.startswith("local[")

"""Store: features of Delta that others may give a table and that lagwise does not keep."""

from deltalake import DeltaTable

from pipeline.errors import StoreError

UNSUPPORTED = (
    "another program has given it a property or feature that lagwise does not support: remove it (ALTER TABLE … UNSET "
    "TBLPROPERTIES, or DROP FEATURE)"
)
"""Cause and remedy, for messages about a table."""


def refuse_deletion_vectors(name: str, handle: DeltaTable) -> None:
    """Return if table `name` cannot have deletion vectors.

    delta-rs does not report their files: a backup would lack them, and maintenance would delete them.

    Raises:
        StoreError: It can have some.
    """
    if "deletionVectors" in (handle.protocol().reader_features or ()):
        raise StoreError(
            f"table {name} at {handle.table_uri} has deletion vectors, which lagwise does not keep: REORG TABLE … "
            "APPLY (PURGE), then ALTER TABLE … DROP FEATURE deletionVectors"
        )

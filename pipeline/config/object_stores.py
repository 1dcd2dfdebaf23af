"""Object stores that take tables: their addresses, and the options that both of their clients obey.

delta-rs commits and Arrow writes files (`tables.filesystem`). With an option that only one of them obeyed, the log and
the files of a table would be in two places, or under two identities.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

_PATH = r"(/[A-Za-z0-9._-]+)*/?"


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """A service, or others that speak its protocol."""

    schemes: tuple[str, ...]
    root: re.Pattern[str]
    written_as: str
    """How a root is written, for who wrote another one."""
    hadoop: str
    """The client that Spark lacks."""
    variables: str
    """Beginning of the environment variables that delta-rs reads."""
    options: Mapping[str, tuple[str, ...]]
    """By the name used here: the names that delta-rs takes, in either case, the first ones first."""

    def given(self, storage_options: Mapping[str, str]) -> dict[str, str]:
        """Values of options, by the names used here."""
        return self._found({name.lower(): value for name, value in storage_options.items()})

    def around(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The same of environment variables."""
        return self._found(
            {name.lower(): value for name, value in environment.items() if name.startswith(self.variables)}
        )

    def unknown(self, storage_options: Mapping[str, str]) -> list[str]:
        """Options that are not for both clients."""
        taken = {name for names in self.options.values() for name in names}
        return [name for name in storage_options if name.lower() not in taken]

    def _found(self, values: Mapping[str, str]) -> dict[str, str]:
        found = {
            option: next(filter(None, map(values.get, names)), None) for option, names in self.options.items()
        }
        return {option: value for option, value in found.items() if value}


def _prefixed(prefix: str, *names: str) -> tuple[str, ...]:
    return tuple(written for name in names for written in (prefix + name, name))


S3 = ObjectStore(
    schemes=("s3", "s3a"),
    root=re.compile(rf"s3a?://[a-z0-9][a-z0-9.-]+{_PATH}"),
    written_as="s3:// in small letters, a bucket",
    hadoop="Hadoop's S3 client",
    variables="AWS_",
    options={
        "access_key_id": _prefixed("aws_", "access_key_id"),
        "secret_access_key": _prefixed("aws_", "secret_access_key"),
        "session_token": _prefixed("aws_", "session_token"),
        "region": _prefixed("aws_", "region", "default_region"),
        "endpoint_url": _prefixed("aws_", "endpoint_url", "endpoint"),
        "allow_http": _prefixed("aws_", "allow_http"),
    },
)
AZURE = ObjectStore(
    schemes=("az", "abfs", "abfss"),
    root=re.compile(
        rf"(az|abfss?)://[a-z0-9$][a-z0-9-]+(@[a-z0-9]+\.(dfs|blob)\.core\.windows\.net)?{_PATH}"
    ),
    written_as="az://container or abfss://container@account.dfs.core.windows.net in small letters",
    hadoop="Hadoop's Azure client",
    variables="AZURE_",
    options={
        "account_name": ("azure_storage_account_name", "account_name"),
        "account_key": (
            *("azure_storage_account_key", "azure_storage_access_key", "azure_storage_master_key"),
            *("account_key", "access_key", "master_key"),
        ),
        "sas_token": ("azure_storage_sas_token", "azure_storage_sas_key", "sas_token", "sas_key"),
        "client_id": ("azure_storage_client_id", "azure_client_id", "client_id"),
        "client_secret": ("azure_storage_client_secret", "azure_client_secret", "client_secret"),
        "tenant_id": (
            *("azure_storage_tenant_id", "azure_storage_authority_id", "azure_tenant_id"),
            *("azure_authority_id", "tenant_id", "authority_id"),
        ),
        "endpoint": ("azure_storage_endpoint", "azure_endpoint", "endpoint"),
        "allow_http": _prefixed("azure_", "allow_http"),
    },
)
_STORES = (S3, AZURE)


def store_of(root: str) -> ObjectStore | None:
    """The object store of a root; None for a folder, and for a store that has no entry here."""
    scheme, separator, _ = root.partition("://")
    if not separator:
        return None
    return next((store for store in _STORES if scheme.lower() in store.schemes), None)

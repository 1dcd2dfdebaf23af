"""Azure: the account and the identity by which Arrow logs in: those of delta-rs with the same options and variables."""

import os
from collections.abc import Mapping
from urllib.parse import urlsplit

from pipeline.config.object_stores import AZURE
from pipeline.errors import StoreError

_FEDERATED = "AZURE_FEDERATED_TOKEN_FILE"
_KEY, _SAS = frozenset({"account_key"}), frozenset({"sas_token"})
_SECRET = frozenset({"client_id", "client_secret", "tenant_id"})
_WORKLOAD = frozenset({"client_id", "tenant_id", _FEDERATED})
_MANAGED = frozenset({"client_id"})


def arguments(root: str, storage_options: Mapping[str, str]) -> dict[str, str]:
    """Return the arguments of Arrow's `AzureFileSystem`.

    Args:
        root: URL.
        storage_options: Of delta-rs, secrets resolved.

    Raises:
        StoreError: Nothing says how to log in, so both clients would ask the address of the machine's metadata; or
            they would log in differently.
    """
    given, around = AZURE.given(storage_options), AZURE.around(os.environ)
    values = {**around, **given}
    account = (urlsplit(root).hostname or "").partition(".")[0] if "@" in root else values.get("account_name")
    if not account:
        raise StoreError(
            f"tables.storage_options: {root} names no account; set AZURE_STORAGE_ACCOUNT_NAME, or write "
            "tables.root as abfss://container@account.dfs.core.windows.net/…"
        )
    identity = _identity(given, around)
    login = {} if identity == _WORKLOAD else {name: values[name] for name in identity}
    if "sas_token" in login:
        # Arrow puts it behind the address as it is.
        login["sas_token"] = f"?{login['sas_token'].lstrip('?')}"
    return {"account_name": account, **login, **_address(values.get("endpoint"), account)}


def container_of(root: str) -> str:
    """Container and path, as Arrow writes them."""
    place = urlsplit(root)
    return f"{place.username or place.hostname}{place.path}"


def _identity(given: Mapping[str, str], around: Mapping[str, str]) -> frozenset[str]:
    """Names of the values by which delta-rs logs in (`AzureConfigHelper`, `MicrosoftAzureBuilder` of object_store)."""
    token_file = {_FEDERATED: os.environ[_FEDERATED]} if os.environ.get(_FEDERATED) else {}
    both = {**around, **token_file, **given}
    if both.keys() >= _KEY:
        return _KEY
    found = _first(given, given) or _first(given, both) or _first(both, both) or _MANAGED
    if not found <= both.keys() or (found == _MANAGED and "client_secret" in both):
        raise StoreError(
            "tables.storage_options: no login to Azure; give AZURE_STORAGE_ACCOUNT_KEY, AZURE_STORAGE_SAS_TOKEN, "
            "AZURE_CLIENT_ID (managed identity), or that with AZURE_CLIENT_SECRET and AZURE_TENANT_ID"
        )
    if found == _WORKLOAD and given.keys() & _WORKLOAD:
        raise StoreError(
            f"tables.storage_options: the environment has a workload identity ({_FEDERATED}), which Arrow takes "
            "only from there; remove client_id and tenant_id"
        )
    return found


def _first(some: Mapping[str, str], values: Mapping[str, str]) -> frozenset[str] | None:
    """The first way that some of these begin, and that the values complete."""
    ways = (_SAS, _SECRET, _WORKLOAD)
    return next((way for way in ways if way & some.keys() and way <= values.keys()), None)


def _address(endpoint: str | None, account: str) -> dict[str, str]:
    if endpoint is None:
        return {}
    url = urlsplit(endpoint)
    if url.path.strip("/") == account:
        authority = url.netloc
    elif not url.path.strip("/") and url.netloc.startswith(f"{account}."):
        # Arrow puts the account before a leading dot.
        authority = url.netloc.removeprefix(account)
    else:
        raise StoreError(
            f"tables.storage_options: the endpoint of Azure account {account} must be https://{account}.… or "
            f"https://…/{account}; Arrow can reach no other"
        )
    return {
        "blob_storage_authority": authority,
        "blob_storage_scheme": url.scheme,
        "dfs_storage_authority": authority.replace(".blob.", ".dfs.", 1),
        "dfs_storage_scheme": url.scheme,
    }

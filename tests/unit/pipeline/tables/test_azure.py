"""By which identity Arrow reaches Azure, and at which address: those of delta-rs, or a refusal."""

import pytest

from pipeline.errors import StoreError
from pipeline.tables import azure

_AT = "abfss://container@account.dfs.core.windows.net/lagwise"
_KEY, _SAS = {"AZURE_STORAGE_ACCOUNT_KEY": "a2V5"}, {"sas_key": "sv=1&sig=x"}
_SECRET = {"AZURE_CLIENT_ID": "i", "AZURE_CLIENT_SECRET": "s", "AZURE_TENANT_ID": "t"}
_WORKLOAD = {"AZURE_CLIENT_ID": "i", "AZURE_TENANT_ID": "t", "AZURE_FEDERATED_TOKEN_FILE": "/token"}
_VARIABLES = [*_KEY, *_SECRET, *_WORKLOAD, "AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_ACCOUNT_NAME"]


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("options", "variables", "login"),
    [
        (_KEY, {}, {"account_key": "a2V5"}),
        ({}, _KEY, {"account_key": "a2V5"}),
        # delta-rs adds the account's key of the environment to whatever is given.
        (_SAS, _KEY, {"account_key": "a2V5"}),
        (_SAS, {}, {"sas_token": "?sv=1&sig=x"}),
        ({"sas_token": "?sv=1"}, _SECRET, {"sas_token": "?sv=1"}),
        (_SECRET, {}, {"client_id": "i", "client_secret": "s", "tenant_id": "t"}),
        (
            _SECRET,
            {"AZURE_STORAGE_SAS_TOKEN": "x"},
            {"client_id": "i", "client_secret": "s", "tenant_id": "t"},
        ),
        (
            {"AZURE_CLIENT_SECRET": "s"},
            {"AZURE_CLIENT_ID": "i", "AZURE_TENANT_ID": "t", "AZURE_STORAGE_SAS_TOKEN": "x"},
            {"client_id": "i", "client_secret": "s", "tenant_id": "t"},
        ),
        (_SECRET, _WORKLOAD, {"client_id": "i", "client_secret": "s", "tenant_id": "t"}),
        ({}, _WORKLOAD, {}),
        (_KEY, _WORKLOAD, {"account_key": "a2V5"}),
        ({"client_id": "managed"}, {}, {"client_id": "managed"}),
        ({}, {"AZURE_CLIENT_ID": "managed"}, {"client_id": "managed"}),
    ],
)
def test_arrow_logs_in_as_delta_rs_does(
    options: dict[str, str], variables: dict[str, str], login: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert azure.arguments(_AT, options) == {"account_name": "account", **login}


@pytest.mark.parametrize(
    ("options", "variables", "words"),
    [
        ({}, {}, "no login to Azure"),
        # Without the tenant both would ask for a managed identity, which nobody has named as such.
        ({"client_id": "i", "client_secret": "s"}, {}, "no login to Azure"),
        ({"tenant_id": "t"}, {}, "no login to Azure"),
        ({"client_id": "other"}, _WORKLOAD, "remove client_id and tenant_id"),
    ],
)
def test_login_that_would_ask_the_machine_or_differ_is_refused(
    options: dict[str, str], variables: dict[str, str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    with pytest.raises(StoreError, match=words):
        azure.arguments(_AT, options)


def test_account_comes_from_the_address_before_the_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "around")

    assert azure.arguments(_AT, _KEY)["account_name"] == "account"
    assert azure.arguments("az://container/x", _KEY)["account_name"] == "around"
    assert azure.arguments("az://container/x", {**_KEY, "account_name": "given"})["account_name"] == "given"
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME")
    with pytest.raises(StoreError, match="names no account"):
        azure.arguments("az://container/x", _KEY)


@pytest.mark.parametrize(
    ("endpoint", "blob", "dfs"),
    [
        (
            "https://account.blob.core.chinacloudapi.cn",
            ".blob.core.chinacloudapi.cn",
            ".dfs.core.chinacloudapi.cn",
        ),
        ("https://127.0.0.1:10000/account", "127.0.0.1:10000", "127.0.0.1:10000"),
    ],
)
def test_endpoint_is_told_to_arrow_in_its_own_parts(endpoint: str, blob: str, dfs: str) -> None:
    told = azure.arguments(_AT, {**_KEY, "AZURE_STORAGE_ENDPOINT": endpoint})

    assert (told["blob_storage_authority"], told["dfs_storage_authority"]) == (blob, dfs)
    assert (told["blob_storage_scheme"], told["dfs_storage_scheme"]) == ("https", "https")


def test_endpoint_of_another_account_is_refused() -> None:
    with pytest.raises(StoreError, match=r"must be https://account\.…"):
        azure.arguments(_AT, {**_KEY, "endpoint": "https://other.blob.core.windows.net"})


@pytest.mark.parametrize("root", ["az://container/a/b", "abfss://container@account.dfs.core.windows.net/a/b"])
def test_path_of_arrow_begins_with_the_container(root: str) -> None:
    assert azure.container_of(root) == "container/a/b"

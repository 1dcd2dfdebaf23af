"""By which identity Arrow reaches Azure, and at which address: those of delta-rs, or a refusal."""

import logging
import traceback
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pipeline import logs
from pipeline.errors import StoreError
from pipeline.operate.doctor import files as doctor_files
from pipeline.tables import azure, storage
from pipeline.tables.owner import heartbeat
from pipeline.tables.table_files import DataFile, TableFiles, TableRows

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


_REFUSED = (
    "Could not open Parquet input source 'x.parquet': DownloadTo from 'https://account.blob.core.windows.net/c/x.parquet"
    "?sig=SIGNATURE%3D&sp=rl&sv=2022-11-02' at position 0 failed. Azure Error: [AuthorizationFailure] 503 Busy"
)


def refuse(*_: Any, **__: Any) -> Any:
    raise OSError(_REFUSED)


def test_no_error_of_a_read_quotes_the_signature_of_a_url(monkeypatch: pytest.MonkeyPatch) -> None:
    table = TableFiles("t", "/none", pa.schema([("lag", pa.int64())]), (DataFile("x", 9, pc.scalar(True)),))
    rows = TableRows(table, {})
    rows.dataset = SimpleNamespace(to_table=refuse, count_rows=refuse)  # type: ignore[assignment]
    folder = SimpleNamespace(folder=lambda _: SimpleNamespace(get_file_info=refuse))
    monkeypatch.setattr(heartbeat, "BeatFile", lambda *_: SimpleNamespace(read=refuse, place="az://c/_owner"))
    reads = (
        lambda: rows.read(columns=["lag"]),
        rows.count,
        lambda: doctor_files._gone(folder, SimpleNamespace(name="t")),  # type: ignore[arg-type]
        lambda: heartbeat.read("az://c", {}),
    )

    for read in reads:
        with pytest.raises(StoreError, match="cannot be read") as raised:
            read()
        assert "SIGNATURE" not in str(raised.value)
        assert "Azure Error" in str(raised.value)


def test_trace_of_a_task_that_cannot_read_does_not_quote_it_either() -> None:
    table = TableFiles("t", "/none", pa.schema([("lag", pa.int64())]), ())
    rows = TableRows(table, {})
    rows.dataset = SimpleNamespace(to_table=refuse)  # type: ignore[assignment]

    with pytest.raises(StoreError) as raised:
        rows.read(columns=["lag"])

    assert "SIGNATURE" not in "".join(traceback.format_exception(raised.value))


def test_neither_the_cause_of_an_outage_nor_a_log_line_quotes_it() -> None:
    record = logging.LogRecord("pipeline", logging.WARNING, __file__, 1, "failed", None, None)
    record.error = _REFUSED
    why = storage.trouble_of(OSError(_REFUSED))

    assert why is not None
    assert "SIGNATURE" not in why + logs._Line().format(record)


def test_a_signature_is_left_out_before_a_cause_is_cut_to_its_end() -> None:
    # Without its beginning a URL is none.
    long = "https://account.blob.core.windows.net/c?" + "sig=SIGNATURE&" * 20

    assert "SIGNATURE" not in (
        storage.trouble_of(OSError(f"{long} Azure Error: [x] 503 Busy")) or "SIGNATURE"
    )

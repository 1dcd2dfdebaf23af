from pathlib import Path

import pytest

from pipeline.config.model import TablesConfig
from pipeline.config.places import check_places
from pipeline.errors import ConfigError

_SPARK = "spark://spark:7077"
_LOCAL = ["local", "local[*]", "local[4]", "local[2,3]"]


@pytest.mark.parametrize("master", _LOCAL)
@pytest.mark.parametrize("root", [".lagwise/tables", "/data", "file:///data"])
def test_folder_of_the_host_that_has_driver_and_executors_is_taken(master: str, root: str) -> None:
    check_places(TablesConfig(root=root), master=master, ships_code=False)


@pytest.mark.parametrize(
    "master", [_SPARK, "yarn", "k8s://https://kubernetes:443", "local-cluster[2,1,1024]"]
)
@pytest.mark.parametrize("root", [".lagwise/tables", "/data", "file:///data", "FILE:/data"])
def test_folder_that_each_executor_would_look_up_by_itself_is_refused(master: str, root: str) -> None:
    with pytest.raises(ConfigError, match=r"tables.root: executors of .* set tables.shared = true"):
        check_places(TablesConfig(root=root), master=master, ships_code=True)


def test_folder_that_every_host_mounts_is_taken() -> None:
    check_places(TablesConfig(root="/data", shared=True), master=_SPARK, ships_code=True)


@pytest.mark.parametrize("root", ["gs://bucket/lagwise", "adl://account/lagwise", "hdfs://name/lagwise"])
@pytest.mark.parametrize("master", ["local[*]", _SPARK])
def test_other_store_than_a_folder_is_refused_unless_the_operator_says_so(root: str, master: str) -> None:
    with pytest.raises(
        ConfigError, match=r"tables.root: .* has not been tried .* set tables.object_store = true"
    ):
        check_places(TablesConfig(root=root, shared=True), master=master, ships_code=True)

    check_places(TablesConfig(root=root, object_store=True), master=master, ships_code=True)


def test_executors_to_whom_nobody_ships_the_code_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"spark.master: yarn .* deploy/submit.sh"):
        check_places(TablesConfig(root="/data", shared=True), master="yarn", ships_code=False)


_AZURE = [
    "az://container/lagwise",
    "abfss://container@account.dfs.core.windows.net/lagwise",
    "abfs://container/lagwise",
]


@pytest.mark.parametrize("root", _AZURE)
def test_container_of_azure_takes_tables(root: str) -> None:
    options = {"AZURE_STORAGE_ACCOUNT_NAME": "a", "azure_storage_sas_key": "env:SAS", "allow_http": "true"}
    tables = TablesConfig(root=root, checkpoint="/data/checkpoint", storage_options=options)

    check_places(tables, master=_SPARK, ships_code=True)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"checkpoint": ""}, r"tables.checkpoint: .* name a folder on the driver's own disk"),
        ({"root": "az://Container/x"}, r"tables.root: .* write az://container or abfss://container@account"),
        ({"root": "abfss://c@account.dfs.core.chinacloudapi.cn/x"}, r"tables.root: .* cannot be used"),
        (
            {"storage_options": {"AZURE_STORAGE_USE_EMULATOR": "true"}},
            r"AZURE_STORAGE_USE_EMULATOR applies to the commits of the tables but not to their files.* sas_token",
        ),
        # delta-rs would not know it.
        ({"storage_options": {"AZURE_ACCOUNT_KEY": "x"}}, r"AZURE_ACCOUNT_KEY applies to"),
        ({"catalog": "lagwise"}, r"tables.catalog: Spark cannot read .* Hadoop's Azure client"),
    ],
)
def test_what_does_not_work_on_azure_is_refused(more: dict[str, object], words: str) -> None:
    given = {"root": _AZURE[0], "checkpoint": "/data/checkpoint", **more}

    with pytest.raises(ConfigError, match=words):
        check_places(TablesConfig(**given), master="local[*]", ships_code=True)


def at_s3(**more: object) -> TablesConfig:
    return TablesConfig(**{"root": "s3://bucket/lagwise", "checkpoint": "/data/checkpoint", **more})


@pytest.mark.parametrize("master", ["local[*]", _SPARK])
def test_bucket_of_s3_takes_tables_for_every_master(master: str) -> None:
    check_places(at_s3(), master=master, ships_code=True)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"checkpoint": ""}, r"tables.checkpoint: .* name a folder on the driver's own disk"),
        (
            {"storage_options": {"AWS_SERVER_SIDE_ENCRYPTION": "aws:kms"}},
            r"tables.storage_options: AWS_SERVER_SIDE_ENCRYPTION applies to the commits of the tables but not to their files",
        ),
        (
            {"storage_options": {"AWS_ACCESS_KEY_ID": "x"}},
            r"tables.storage_options: an access key has two parts",
        ),
        ({"root": "s3://bucket/a b"}, r"tables.root: s3://bucket/a b cannot be used"),
        ({"root": "S3://bucket/lagwise"}, r"tables.root: S3://bucket/lagwise cannot be used"),
        ({"catalog": "lagwise"}, r"tables.catalog: Spark cannot read s3://bucket/lagwise"),
    ],
)
def test_what_does_not_work_on_s3_is_refused(more: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        check_places(at_s3(**more), master="local[*]", ships_code=True)


@pytest.mark.parametrize("name", list("[]{}^|%*?#\\\n\t"))
def test_folder_in_which_spark_and_delta_rs_would_not_find_the_tables_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / f"a{name}b"
    folder.mkdir()
    monkeypatch.chdir(folder)

    for root in (str(folder), ".lagwise/tables"):
        with pytest.raises(
            ConfigError, match=r"^tables.root: .* its path contains \S+; point tables.root at another"
        ):
            check_places(TablesConfig(root=root), master="local[*]", ships_code=True)

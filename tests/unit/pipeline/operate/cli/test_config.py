from pathlib import Path
from typing import Any

import pytest

from pipeline.config.load import load, tomllib
from pipeline.config.model import Config


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "x.toml"


def test_printed_config_loads_as_the_same(command: Any, file: Path, tmp_path: Path) -> None:
    file.write_text(
        "[cluster]\nname = 'a\"b'\n[kafka.properties]\nbootstrap.servers = 'b:1'\n[spark]\nspark.x = 1\n"
        "[[plan.groups]]\npattern = 'a'\noptions = {max_moves = 3, floor_s = 5.5, counts = 'even'}\n[[plan.groups]]\npattern = 'b\\d'\n",
        encoding="utf-8",
    )

    printed = tmp_path / "printed.toml"
    printed.write_text(command("config", "check", str(file)).stdout, encoding="utf-8")

    assert load(printed) == load(file)


def test_defaults_are_printed(command: Any, file: Path) -> None:
    file.write_text("", encoding="utf-8")

    result = command("config", "check", str(file))

    assert Config.model_validate(tomllib.loads(result.stdout)) == Config()
    assert result.exit_code == 0


def test_last_line_is_the_verdict(command: Any, file: Path) -> None:
    file.write_text("", encoding="utf-8")
    sound = command("config", "check", str(file))
    file.write_text("[spark]\n'spark.my.secret' = 'hunter2'\n", encoding="utf-8")
    risky = command("config", "check", str(file))

    assert sound.stderr == f"{file} can be used as it is\n"
    assert risky.stderr.endswith(f"\n{file} can be used, with 1 warning(s)\n")


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ("'security.protocl' = 'SSL'", 'No such configuration property: "security.protocl"'),
        ("'security.protocol' = 'hunter2'", 'Invalid value for configuration property "security.protocol"'),
        (
            "'socket.timeout.ms' = '1'",
            'Configuration property "socket.timeout.ms" value 1 is outside allowed',
        ),
    ],
)
def test_property_that_librdkafka_refuses_is_told(
    properties: str, said: str, command: Any, file: Path
) -> None:
    file.write_text(f"[kafka.properties]\n'bootstrap.servers' = 'b:1'\n{properties}\n", encoding="utf-8")

    result = command("config", "check", str(file))

    assert result.exit_code == 1
    assert f"kafka.properties: {said}" in result.stderr
    assert "hunter2" not in result.stderr


def test_properties_are_judged_without_their_secrets_and_files(command: Any, file: Path) -> None:
    file.write_text(
        """[kafka.properties]
"bootstrap.servers" = "b:1"
"security.protocol" = "SASL_SSL"
"sasl.mechanism" = "PLAIN"
"sasl.username" = "lagwise"
"sasl.password" = "env:NOT_HERE"
"ssl.ca.location" = "/not/here"
""",
        encoding="utf-8",
    )

    assert command("config", "check", str(file)).exit_code == 0


def test_guards_of_a_rule_are_printed_as_they_apply(command: Any, file: Path, tmp_path: Path) -> None:
    file.write_text(
        "[plan.guards]\nmin_lag = 7\nsettle_s = 5\npin = ['a']\n"
        "[[plan.groups]]\npattern = 'b'\nguards = { settle_s = 120 }\n[[plan.groups]]\npattern = 'c'\n",
        encoding="utf-8",
    )
    printed = tmp_path / "printed.toml"
    printed.write_text(command("config", "check", str(file)).stdout, encoding="utf-8")

    first, second = (rule["guards"] for rule in tomllib.loads(printed.read_text())["plan"]["groups"])
    assert [(each["min_lag"], each["settle_s"], each["pin"]) for each in (first, second)] == [
        (7, 120, ["a"]),
        (7, 5, ["a"]),
    ]
    assert all(load(printed).plan.for_group(name) == load(file).plan.for_group(name) for name in "abc")


def test_secrets_are_masked_and_warned_of(command: Any, file: Path) -> None:
    file.write_text(
        "[kafka.properties]\n'bootstrap.servers' = 'b'\n'sasl.password' = 'hunter2'\n"
        "'ssl.key.password' = 'env:KEY_PASSWORD'\n"
        "[kafka.java]\n'sasl.jaas.config' = 'hunter2'\n[spark]\n'spark.my.secret' = 'hunter2'\n"
        "[tables.storage_options]\nAWS_SECRET_ACCESS_KEY = 'hunter2'\n",
        encoding="utf-8",
    )

    result = command("config", "check", str(file))

    assert result.exit_code == 0
    assert "hunter2" not in result.output
    assert result.stdout.count('"****"') == result.stdout.count("****") == 4
    assert '"ssl.key.password" = "env:KEY_PASSWORD"' in result.stdout
    assert result.stderr.count("a secret in plain text") == 3
    assert "kafka.java: has no effect" in result.stderr


def test_config_that_cannot_be_used_is_exit_status_1(command: Any, file: Path) -> None:
    file.write_text("[plan]\nintervall_s = 1\n", encoding="utf-8")

    result = command("config", "check", str(file))

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == f'lagwise: {file}: plan.intervall_s: unknown key; did you mean "interval_s"?\n'


def test_missing_file_is_exit_status_1(command: Any, file: Path) -> None:
    result = command("config", "check", str(file))

    assert result.exit_code == 1
    assert "copy conf/lagwise.toml" in result.stderr


def test_debug_shows_where_an_error_comes_from(
    command: Any, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAGWISE_DEBUG", "1")

    with pytest.raises(Exception, match="no such file"):
        command("config", "check", str(file))


def test_what_it_takes_stands_in_comments_and_what_is_asked_and_does_not_fit_is_warned_of(
    command: Any, file: Path
) -> None:
    file.write_text("[source]\nmax_offsets_per_trigger = 1000\n", encoding="utf-8")

    asked = command("config", "check", str(file), "--partitions", "300000", "--commits", "60000")
    by_default = command("config", "check", str(file))

    assert "# 300,000 and 100,000: a batch " in asked.stdout
    assert asked.stderr.startswith("warning: source.max_offsets_per_trigger: 1000 take about ")
    assert asked.exit_code == 0
    assert [f"# {size} and " in by_default.stdout for size in ("10,000", "100,000", "1,000,000")] == [
        True
    ] * 3
    assert by_default.stderr == f"{file} can be used as it is\n"


def test_commits_are_not_asked_about_without_a_number_of_partitions(command: Any, file: Path) -> None:
    file.write_text("", encoding="utf-8")

    assert command("config", "check", str(file), "--commits", "60000").exit_code == 2


def test_cores_of_a_cluster_are_predicted_and_a_large_group_takes_from_what_they_buy(
    command: Any, file: Path
) -> None:
    file.write_text("", encoding="utf-8")

    def printed(*options: str) -> str:
        (line,) = (
            line
            for line in command(
                "config", "check", str(file), "--partitions", "300000", *options
            ).stdout.splitlines()
            if line.startswith("# 300,000: ")
        )
        return str(line)

    alike, one_large = printed("--cores", "8"), printed("--cores", "8", "--largest", "200000")

    seconds = [
        float(line.removeprefix("# 300,000: ").partition(" s, with one core ")[0])
        for line in (alike, one_large)
    ]
    assert seconds[0] < seconds[1]
    assert "the driver's own " in alike


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        (["--largest", "200000"], "needs --cores"),
        (["--cores", "4", "--largest", "999"], "give 1000 or more"),
    ],
)
def test_largest_group_that_changes_no_prediction_is_refused(
    command: Any, file: Path, options: list[str], cause: str
) -> None:
    file.write_text("", encoding="utf-8")

    refused = command("config", "check", str(file), *options)

    assert (refused.exit_code, refused.stdout) == (2, "")
    assert cause in " ".join(refused.stderr.replace("│", " ").split())


def test_a_cluster_is_predicted_only_where_its_cores_are_given(command: Any, file: Path) -> None:
    file.write_text("", encoding="utf-8")

    assert "predicted" not in command("config", "check", str(file)).stdout
    by_default = command("config", "check", str(file), "--cores", "4").stdout
    assert [f"\n# {size}: " in by_default for size in ("10,000", "100,000", "1,000,000")] == [True] * 3


@pytest.mark.parametrize("scheme", ["hdfs", "adl", "gs"])
def test_place_that_run_would_refuse_is_refused_and_one_that_it_would_take_is_warned_of(
    command: Any, file: Path, scheme: str
) -> None:
    root = f'[tables]\nroot = "{scheme}://bucket/tables"\n'
    file.write_text(root, encoding="utf-8")

    refused = command("config", "check", str(file))

    assert refused.exit_code == 1
    assert "is not a local folder" in refused.stderr
    file.write_text(f"{root}object_store = true\n", encoding="utf-8")
    taken = command("config", "check", str(file))
    assert taken.exit_code == 0
    assert "lagwise has not been tried there" in taken.stderr


def test_cluster_without_a_shared_folder_is_refused_as_by_run(command: Any, file: Path) -> None:
    file.write_text('[spark]\n"spark.master" = "spark://host:7077"\n', encoding="utf-8")

    refused = command("config", "check", str(file))

    assert refused.exit_code == 1
    assert "tables.shared = true" in refused.stderr

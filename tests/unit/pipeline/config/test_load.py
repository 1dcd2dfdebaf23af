from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.config.load import load
from pipeline.config.model import Config
from pipeline.errors import ConfigError

Loader = Callable[[str], Config]
Problems = Callable[[str], list[str]]


def test_empty_file_is_the_defaults(load_text: Loader) -> None:
    assert load_text("") == Config()


def test_quoted_and_bare_dotted_properties_are_the_same(load_text: Loader) -> None:
    quoted = load_text('[kafka.properties]\n"bootstrap.servers" = "b:1"\n"ssl.ca.location" = "/ca"\n')
    bare = load_text('[kafka.properties]\nbootstrap.servers = "b:1"\nssl.ca.location = "/ca"\n')

    assert quoted.kafka.properties == {"bootstrap.servers": "b:1", "ssl.ca.location": "/ca"}
    assert bare == quoted


def test_numbers_and_booleans_become_property_text(load_text: Loader) -> None:
    config = load_text('[spark]\n"spark.sql.shuffle.partitions" = 4\n"spark.ui.enabled" = false\n')

    assert config.spark == {"spark.sql.shuffle.partitions": "4", "spark.ui.enabled": "false"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[plan]\nintervall_s = 1", 'plan.intervall_s: unknown key; did you mean "interval_s"?'),
        ("[plann]\ninterval_s = 1", 'plann: unknown key; did you mean "plan"?'),
        ("[start]\nkeep_days = 3", "start.keep_days: unknown key; it belongs to [history]"),
        ("half_life_s = 3", "half_life_s: unknown key; it belongs to [rates]"),
        ("[plan]\nhalf_life = 3", 'plan.half_life: unknown key; did you mean "half_life_s" in [rates]?'),
        (
            "[[plan.groups]]\npattern = 'a'\nstrateg = 'x'",
            'plan.groups[0].strateg: unknown key; did you mean "strategy"?',
        ),
        ("[status]\nzzz = 1", "status.zzz: unknown key; the keys here are allowed_lag"),
        (
            "[kafka]\nsasl.password = 'x'",
            'kafka.sasl: unknown key; properties of the Kafka client belong to [kafka.properties], as "sasl..." = "..."',
        ),
    ],
    ids=[
        "misspelt",
        "misspelt table",
        "other table",
        "no table",
        "near in other table",
        "array",
        "far",
        "kafka",
    ],
)
def test_unknown_key_gets_advice(problems: Problems, text: str, expected: str) -> None:
    assert problems(text) == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[plan]\ninterval_s = 'x'", "plan.interval_s: must be a whole number, not 'x'"),
        ("[plan]\ninterval_s = 1.5", "plan.interval_s: must be a whole number, not 1.5"),
        ("[plan]\ndry_run = 'no'", "plan.dry_run: must be true, false or \"approve\", not 'no'"),
        ("[plan]\ndry_run = 'true'", "plan.dry_run: must be true, false or \"approve\", not 'true'"),
        (
            "[[plan.groups]]\npattern = 'a'\ndry_run = 'aprove'",
            "plan.groups[0].dry_run: must be true, false or \"approve\", not 'aprove'",
        ),
        ("[plan]\ndry_run = 0", 'plan.dry_run: must be true, false or "approve", not 0'),
        ("[trigger]\ninterval_s = 0", "trigger.interval_s: must be at least 1, not 0"),
        ("[history]\nkeep_days = 1000000", "history.keep_days: must be at most 36500, not 1000000"),
        ("[tables]\nretention_hours = inf", "tables.retention_hours: must be at most 87600, not inf"),
        ("[source]\ntopics_include = 'a'", "source.topics_include: must be an array, not 'a'"),
        ("[source]\ntopics_include = [1]", "source.topics_include[0]: must be a string, not 1"),
        (
            "[source]\nisolation = 'none'",
            "source.isolation: must be 'read_uncommitted' or 'read_committed', not 'none'",
        ),
        ("plan = 'x'", "plan: must be a table, not 'x'"),
        ("[cluster]\nname = 2026-01-01", "cluster.name: must be a string, not date"),
        (
            "[history]\ninterval_s = 1000",
            "history: max_gap_s must be at least interval_s (1000)",
        ),
        ("[kafka.properties]\nx = 'y'", 'kafka.properties: "bootstrap.servers" is missing'),
        ("[[plan.groups]]\nstrategy = 'lag-aware'", "plan.groups[0].pattern: missing"),
        (
            "[[plan.groups]]\npattern = 'a'\nguards = {cooldown_s = 1.5}",
            "plan.groups[0].guards.cooldown_s: must be a whole number, not 1.5",
        ),
        (
            "[[plan.groups]]\npattern = 'a'\npoke = true",
            'plan.groups[0]: poke = true needs follow = "broker": set both, or remove poke',
        ),
        (
            "[[plan.groups]]\npattern = 'a'\nguards = {min_lags = 1}",
            'plan.groups[0].guards.min_lags: unknown key; did you mean "min_lag_s"?',
        ),
    ],
)
def test_wrong_value_says_what_is_expected(problems: Problems, text: str, expected: str) -> None:
    assert problems(text) == [expected]


def test_every_problem_is_told_at_once(problems: Problems) -> None:
    lines = problems("[plan]\ninterval_s = 'x'\n[trigger]\nintervals = 1\n")

    assert [line.split(":")[0] for line in lines] == ["trigger.intervals", "plan.interval_s"]


def test_topic_of_the_users_own_may_begin_with_underscores(tmp_path: Path) -> None:
    """Kafka's internal topics have names that Kafka fixes."""
    file = tmp_path / "lagwise.toml"
    file.write_text("[control]\ntopic = '__lagwise.assignments'\nacks_topic = '__acks'")

    assert load(file).control.topic == "__lagwise.assignments"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[source]\ntopics_include = ['(']", "source.topics_include[0]: must be a regular expression: "),
        ("[control]\ntopic = 'a b'", "control.topic: must be a topic name: "),
        ("[tables]\ncatalog = 'a.b'", "tables.catalog: must be a database name: "),
        ("[tables]\ncatalog = 'Lags'", "tables.catalog: must be a database name: "),
        (
            "[plan]\nstrategy = 'best'",
            "plan.strategy: must be one of constrained-cooperative-sticky, cooperative-sticky, lag-aware",
        ),
        (
            "[[plan.groups]]\npattern = 'a'\nstrategy = 'lag-aware'\noptions = {scope = 'all'}",
            "plan: groups[0].options: lag-aware: option 'scope' must be one of topic, group, got 'all'",
        ),
        ("[control.acks_topics]\n'shop-' = 'a b'", "control.acks_topics.shop-: must be a topic name: "),
        (
            "[control.acks_topics]\n'shop-' = 'lagwise.commands'",
            'control: acks_topics."shop-": lagwise.commands is control.commands_topic as well; choose',
        ),
        (
            "[control]\ntopic = 'plans'\nacks_topics = {'shop-' = 'plans'}",
            'control: acks_topics."shop-": plans is control.topic as well; choose another',
        ),
        (
            "[control]\nacks_topic = 'lagwise.commands'",
            "control: acks_topic: lagwise.commands is control.commands_topic as well; choose another",
        ),
        (
            "[control]\ntopic = 'lw'\ncommands_topic = 'lw'",
            "control: commands_topic: lw is control.topic as well; choose another",
        ),
        (
            "[control]\nacks_topic = 'lagwise.assignments'",
            "control: acks_topic: lagwise.assignments is control.topic as well; choose another",
        ),
        (
            "[control]\ncommands_topic = '__consumer_offsets'",
            "control: commands_topic: __consumer_offsets is an internal topic of Kafka; choose another",
        ),
        (
            "[control.acks_topics]\n'shop-' = '__consumer_offsets'",
            'control: acks_topics."shop-": __consumer_offsets is an internal topic of Kafka; choose another',
        ),
    ],
    ids=[
        "pattern",
        "topic",
        "database with a dot",
        "database in upper case",
        "strategy",
        "strategy's option",
        "tenant's topic",
        "commands as a tenant's topic",
        "plans as a tenant's topic",
        "orders as acknowledgements",
        "plans as orders",
        "plans as acknowledgements",
        "Kafka's own as orders",
        "Kafka's own as a tenant's topic",
    ],
)
def test_value_is_checked_by_its_meaning(problems: Problems, text: str, expected: str) -> None:
    assert problems(text)[0].startswith(expected)


def test_half_written_toml_has_line_and_column(problems: Problems) -> None:
    assert problems("[cluster]\nname =") == ["not TOML: Invalid value (at end of document)"]
    assert problems("[plan\ninterval_s = 1")[0].endswith("(at line 1, column 6)")


def test_missing_file_says_what_to_copy(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no such file; copy conf/lagwise\.toml there"):
        load(tmp_path / "none.toml")


def test_folder_in_place_of_a_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        load(tmp_path)


def test_bytes_that_are_not_utf8_are_one_line(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_bytes(b"[cluster]\nname = '\xff'\n")

    with pytest.raises(ConfigError, match="not UTF-8 text: byte 18"):
        load(file)


@pytest.mark.parametrize(
    "text",
    [
        "[kafka.properties]\n'sasl.password' = 'hunter2'",
        "[kafka.properties]\n'bootstrap.servers' = 'b'\n'sasl.password' = ['hunter2']",
        "[kafka]\nproperties = 'hunter2'",
        "[kafka]\njava = 'hunter2'",
        "[kafka]\nsasl_password = 'hunter2'",
        "kafka = 'hunter2'",
        "[spark]\na = ['hunter2']",
        "[tables]\nstorage_options = 'hunter2'",
        "[kafka.properties]\nsasl.password = 'hunter2",
        "[serve]\ntoken = 'hunter2'",
    ],
)
def test_no_error_quotes_a_secret(problems: Problems, text: str) -> None:
    assert "hunter2" not in "".join(problems(text))


@pytest.mark.parametrize("table", ["kafka.properties", "kafka.java", "spark", "tables.storage_options"])
def test_repr_holds_no_properties(load_text: Loader, table: str) -> None:
    config = load_text(f"[{table}]\n'bootstrap.servers' = 'b'\n'sasl.password' = 'hunter2'")

    assert "hunter2" in config.model_dump_json()
    assert "hunter2" not in repr(config)
    assert "hunter2" not in str(config)


def test_error_of_the_model_itself_quotes_nothing() -> None:
    with pytest.raises(ValueError, match="properties") as raised:
        Config.model_validate({"kafka": {"properties": "hunter2"}})

    assert "hunter2" not in str(raised.value)


def test_config_cannot_be_changed(load_text: Loader) -> None:
    with pytest.raises(ValueError, match="frozen"):
        load_text("").plan.interval_s = 5  # type: ignore[misc]  # what is tested


_OAUTH = '"bootstrap.servers" = "b:1"\n"security.protocol" = "SASL_SSL"\n"sasl.mechanism" = "OAUTHBEARER"\n'


@pytest.mark.parametrize(
    ("name", "properties", "problem"),
    [
        (
            "tokens",
            _OAUTH,
            'kafka.token_provider: must be "module:function", such as "company.kafka_tokens:token"',
        ),
        ("a b:token", _OAUTH, 'kafka.token_provider: must be "module:function"'),
        ("tokens:token()", _OAUTH, 'kafka.token_provider: must be "module:function"'),
        ("tokens:token", '"bootstrap.servers" = "b:1"\n', 'kafka: token_provider needs "security.protocol"'),
        (
            "tokens:token",
            _OAUTH.replace("OAUTHBEARER", "PLAIN"),
            'kafka: token_provider needs "security.protocol"',
        ),
        (
            "tokens:token",
            _OAUTH.replace("SASL_SSL", "SSL"),
            'kafka: token_provider needs "security.protocol"',
        ),
        (
            "tokens:token",
            _OAUTH + '"sasl.oauthbearer.method" = "oidc"\n',
            'kafka: token_provider and "sasl.oauthbearer.method" both provide tokens',
        ),
    ],
)
def test_token_provider_that_cannot_be_used_is_refused_with_the_remedy(
    tmp_path: Path, name: str, properties: str, problem: str
) -> None:
    file = tmp_path / "lagwise.toml"
    file.write_text(f'[kafka]\ntoken_provider = "{name}"\n[kafka.properties]\n{properties}', encoding="utf-8")

    with pytest.raises(ConfigError) as refused:
        load(file)

    assert str(refused.value).startswith(f"{file}: {problem}")
    assert "not a string" not in str(refused.value)


def test_token_provider_is_a_function_of_a_module(tmp_path: Path) -> None:
    file = tmp_path / "lagwise.toml"
    file.write_text(
        f'[kafka]\ntoken_provider = "a.b_1:C.token"\n[kafka.properties]\n{_OAUTH}', encoding="utf-8"
    )

    assert load(file).kafka.token_provider.endswith("a.b_1:C.token")

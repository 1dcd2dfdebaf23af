import pytest

from pipeline.operate.sql.statements import (
    RefusedError,
    cut,
    is_empty,
    names_in,
    refuse_writes,
)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ';' AS a",
        r"SELECT 'it\';s' AS a",
        'SELECT ";" AS a',
        "SELECT `a;b` FROM t",
        "SELECT 1 -- not; here\n + 1",
        "SELECT /* nor; here\n */ 1",
        "SELECT 1 /* a /* b */ ; c */",
        r"SELECT r'C:\;' AS a",
        "/* a /*+ b */ SELECT 1",
        "SELECT 1 -- not \\\n; here\n + 1",
        r'SELECT R"C:\;" AS a',
        r"SELECT decoder'\';' AS a",
    ],
)
def test_semicolon_in_quotes_or_comments_ends_nothing(text: str) -> None:
    assert cut(f"{text};") == ([text], "")


@pytest.mark.parametrize(
    "text", ["SELECT 'a;", "SELECT `a;", 'SELECT "a;', "SELECT 1 /* a;", "SELECT 'a;\\", "/* a /* b */ ;"]
)
def test_quote_or_comment_that_is_open_has_the_statement_go_on(text: str) -> None:
    assert cut(text) == ([], text)


def test_raw_string_ends_at_its_quote_whatever_is_before() -> None:
    assert cut(r"SELECT r'C:\'; SELECT 2;") == ([r"SELECT r'C:\'", "SELECT 2"], "")


def test_comments_are_no_statement() -> None:
    assert cut("-- a\n/* b */ ;\n") == ([], "\n")
    assert is_empty(" -- a\n/* b */ ")
    assert not is_empty("/* b ")


@pytest.mark.parametrize(
    "statement",
    [
        "insert into acks select * from acks",
        "-- look\nDROP TABLE acks",
        "/* look */ (DELETE FROM acks)",
        "VACUUM acks",
        "EXPLAIN DELETE FROM acks",
        "explain extended\nupdate acks set id = 'a'",
        "SET spark.sql.ansi.enabled = false",
        "MERGE INTO acks USING acks ON true WHEN MATCHED THEN DELETE",
        "ALTER TABLE acks ADD COLUMN a INT",
        "CREATE TABLE a (b INT)",
    ],
)
def test_first_word_that_writes_is_refused_and_named(statement: str) -> None:
    with pytest.raises(RefusedError, match=r"^[A-Z]+ is refused, and nothing was run: .* begin with SELECT"):
        refuse_writes(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT 'DROP TABLE acks'",
        "(SELECT 1) UNION (SELECT 2)",
        "WITH a AS (SELECT 1) SELECT * FROM a",
        "DESCRIBE HISTORY acks",
        "EXPLAIN SELECT 1",
        "SHOW TABLES",
        "-- DROP\nTABLE acks",
        # Spark says what is wrong with it.
        "SELEC 1",
        "?",
    ],
)
def test_first_word_that_reads_goes_on_to_spark(statement: str) -> None:
    refuse_writes(statement)


def test_names_of_tables_are_found_in_whatever_case() -> None:
    statement = "SELECT * FROM Partition_Lag WHERE 1 IN (SELECT partition FROM default.`acks`)"

    assert names_in(statement, ("acks", "orders", "partition_lag")) == ["acks", "partition_lag"]

"""Class data archives: which one is taken, and when."""

import os
from pathlib import Path

import pytest

from pipeline.local import class_data


@pytest.fixture
def jars(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Path]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = [tmp_path / name for name in ("a.jar", "b.jar")]
    for jar in made:
        jar.write_text("classes")
    return made


def put(kind: class_data.Kind, jars: list[Path]) -> Path:
    """Put an archive of these jars in place."""
    archive = class_data.archive(kind, jars)
    archive.parent.mkdir(parents=True, exist_ok=True)
    making = archive.with_name("partial")
    making.write_text("archive")
    assert class_data.put_in_place(making, archive)
    return archive


def test_archive_of_the_same_jars_is_the_same_file(jars: list[Path]) -> None:
    assert class_data.archive("spark", jars) == class_data.archive("spark", jars)


def test_archive_is_another_one_when_a_jar_was_replaced(jars: list[Path]) -> None:
    before = class_data.archive("spark", jars)
    os.utime(jars[1], (1, 1))

    assert class_data.archive("spark", jars) != before


def test_archive_is_another_one_for_jars_in_another_order(jars: list[Path]) -> None:
    assert class_data.archive("spark", jars) != class_data.archive("spark", jars[::-1])


def test_archive_is_named_without_any_java(
    jars: list[Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))

    assert class_data.archive("kafka", jars).name.startswith("kafka-")


def test_no_option_is_given_without_an_archive(jars: list[Path]) -> None:
    assert class_data.use(class_data.archive("kafka", jars)) == ()


def test_archive_is_taken_once_it_is_in_its_place_and_those_of_its_kind_go_that_are_a_month_old(
    jars: list[Path],
) -> None:
    archive = class_data.archive("kafka", jars)
    archive.parent.mkdir(parents=True)
    names = ("kafka-older-7.jsa", "kafka-another-7.jsa", "spark-older-7.jsa")
    older, another, other = (archive.with_name(name) for name in names)
    for one in (older, another, other):
        one.write_text("archive")
    for one in (older, other):
        os.utime(one, (1, 1))

    put("kafka", jars)

    file = class_data.found(archive)
    assert f"-XX:SharedArchiveFile={file}" in class_data.use(archive)
    assert set(archive.parent.iterdir()) == {file, another, other}


def test_archive_that_was_cut_short_is_not_taken(jars: list[Path]) -> None:
    archive = put("spark", jars)
    file = class_data.found(archive)
    assert file
    file.write_text("arch")

    assert class_data.use(archive) == ()


def test_nothing_is_put_in_place_when_java_made_no_archive(jars: list[Path], tmp_path: Path) -> None:
    assert not class_data.put_in_place(tmp_path / "never", class_data.archive("kafka", jars))

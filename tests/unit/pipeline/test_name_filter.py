"""Which names patterns let through."""

import pytest

from pipeline.name_filter import NameFilter


@pytest.mark.parametrize("name", ["a\nb", "\n", "a\r\nb", "", "a\0b", "a\u2028b"])
def test_dot_means_every_character(name: str) -> None:
    assert NameFilter((".*",)).admits(name)
    assert not NameFilter((".*",), (".*",)).admits(name)


def test_patterns_match_the_whole_name_and_exclusion_wins() -> None:
    some = NameFilter(("a.*", "b"), ("ab.*",))

    assert [name for name in ("a", "a\n", "abc", "b", "bc", "xa", "b\n") if some.admits(name)] == [
        "a",
        "a\n",
        "b",
    ]


def test_nothing_passes_where_nothing_is_included() -> None:
    assert not NameFilter(()).admits("a")

"""Single samples as text."""

import pytest

from pipeline.exposition import Family, line
from tests.support.operate.prometheus_text import parse


@pytest.mark.parametrize("name", ['say "hi"', "back\\slash", "back\\n", "two\nlines", "a}b", "ü\t\0"])
def test_names_come_back_as_they_are(name: str) -> None:
    text = Family("x", "Help").text({(("cluster_name", name),): 1.5})

    assert parse(text).value("x", cluster_name=name) == 1.5


def test_unknown_is_no_sample_and_a_family_without_samples_is_not_there() -> None:
    assert Family("x", "Help").text({(("a", "1"),): None}) == ""
    assert Family("x", "Help").text({(("a", "1"),): None, (): 0.0}).splitlines()[2:] == ["x 0.0"]


def test_sample_without_labels_has_no_braces() -> None:
    assert line("x", {}, 3) == "x 3\n"

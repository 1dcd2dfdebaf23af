"""Alerts use only metrics that exist, and say what to do."""

import re

import pytest

from pipeline.config.advice import ALERTS_OLD_S
from tests.support.operate.exposed import TARGET, Exposed, exposed
from tests.support.operate.monitoring import HOME, Alert, alerts, used, with_tests
from tests.unit.test_docs import anchors

_ROOT = HOME.parents[1]
_PAGE = (_ROOT / "deploy" / "docs" / "monitoring.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Exposed:
    return exposed(tmp_path_factory.mktemp("tables"))


def unknown_in(expr: str, known: Exposed) -> set[str]:
    """Metrics in the expression that do not exist, and labels that they do not have."""
    names = used(expr)
    of_metric = {
        f"{metric}{{{label}}}"
        for metric, labels in names.selectors
        if metric in known
        for label in labels - known[metric] - TARGET
    }
    missing = {metric for metric, _ in names.selectors if metric not in known}
    return of_metric | missing | {*names.labels - labels_of(expr, known)}


def labels_of(expr: str, known: Exposed) -> frozenset[str]:
    """All labels that a result of the expression can have."""
    return TARGET.union(*(known.get(metric, frozenset()) for metric, _ in used(expr).selectors))


def test_expressions_are_read_as_they_are_meant(known: Exposed) -> None:
    expr = 'sum by (grp) (rate(up{jo="{}x", instance=~"a"}[5m] offset 1h)) / on (job) lagwise_liv > 1e3 or vector(0)'

    assert used(expr).selectors == (("up", frozenset({"jo", "instance"})), ("lagwise_liv", frozenset()))
    assert unknown_in(expr, known) == {"up{jo}", "lagwise_liv", "grp"}


@pytest.mark.parametrize("alert", alerts(), ids=lambda one: one.name)
def test_alert_asks_for_what_is_exposed(alert: Alert, known: Exposed) -> None:
    assert used(alert.expr).selectors
    assert unknown_in(alert.expr, known) == set()
    shown = set(re.findall(r"\$labels\.(\w+)", " ".join(alert.annotations.values())))
    assert shown <= labels_of(alert.expr, known)


@pytest.mark.parametrize("alert", alerts(), ids=lambda one: one.name)
def test_alert_says_what_is_wrong_and_where_to_read_on(alert: Alert) -> None:
    assert alert.annotations["summary"]
    assert alert.annotations["description"].endswith(".")
    page, _, anchor = alert.annotations["runbook_url"].partition("#")
    assert page == "deploy/docs/runbook.md"
    assert anchor in anchors(_ROOT / page)


@pytest.mark.parametrize("alert", alerts(), ids=lambda one: one.name)
def test_command_of_an_alert_quotes_the_name_of_the_group(alert: Alert) -> None:
    """A group's name may be a command for the shell of who pastes it, or look like an option."""
    commands = re.findall(r"`([^`]*\$labels\.[^`]*)`", alert.annotations["description"])

    for command in commands:
        name = re.search(r"""(-- |--group=)'\{\{ reReplaceAll "'" "'\\\\''" \$labels\.group \}\}'""", command)
        assert name
        assert "$labels" not in command.replace(name[0], "")


def test_every_alert_is_tested_both_ways_and_documented() -> None:
    names = {alert.name for alert in alerts()}
    documented = set(re.findall(r"^\| `(\w+)` \|", _PAGE, re.MULTILINE))

    assert len(names) == len(alerts()) == (HOME / "alerts.yaml").read_text().count("alert: ") == 11
    assert with_tests() == (names, names)
    assert documented == names


def test_alerts_on_figures_of_groups_rest_on_fresh_tables_of_the_same_cluster() -> None:
    stale = {
        alert.name
        for alert in alerts()
        if "and on (job, instance, cluster) lagwise_tables_age_seconds <= 300" not in alert.expr
    }

    assert {name for name in stale if name.startswith("ConsumerGroup")} == set()


def test_config_check_warns_of_triggers_by_the_age_that_the_alerts_take_for_old() -> None:
    ages = {
        age
        for alert in alerts()
        for age in re.findall(r"lagwise_tables_age_seconds (?:<=|>) (\d+)", alert.expr)
    }

    assert ages == {str(ALERTS_OLD_S)}


def test_no_alert_and_no_silence_takes_two_clusters_for_one() -> None:
    """`up` and the metrics of a driver have no label `cluster`."""
    lists = {
        names
        for file in ("alerts.yaml", "alertmanager.yaml")
        for names in re.findall(
            r"(?:\b(?:on|by) \(|(?:group_by|equal): \[)([\w, ]+)[)\]]",
            (HOME / file).read_text(encoding="utf-8"),
        )
    }

    assert {names for names in lists if not re.search(r"\bcluster\b", names)} == {
        "job, instance",
        "cluster_name",
    }

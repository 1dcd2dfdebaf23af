import pytest

from pipeline.config.model import Config, GroupRule, PlanConfig, SourceConfig, TablesConfig

_PLAN = PlanConfig(
    groups=(
        GroupRule(pattern="billing-test", exclude=True),
        GroupRule(
            pattern="billing-.*",
            strategy="constrained-cooperative-sticky",
            dry_run=False,
            auto_offset_reset="latest",
        ),
        GroupRule(pattern=".*-eu", options={"counts": "even"}),
    )
)


def test_first_rule_that_matches_wins() -> None:
    assert _PLAN.for_group("billing-test").exclude
    assert not _PLAN.for_group("billing-eu").exclude
    assert _PLAN.for_group("billing-eu").strategy == "constrained-cooperative-sticky"


def test_rule_says_false_over_true() -> None:
    assert _PLAN.dry_run
    assert _PLAN.for_group("billing-eu").dry_run is False


def test_groups_may_ask_for_approval_each_by_itself() -> None:
    plan = PlanConfig.model_validate(
        {"dry_run": "approve", "groups": [{"pattern": "a", "dry_run": True}, {"pattern": "b"}]}
    )

    assert [plan.for_group(name).dry_run for name in "abc"] == [True, "approve", "approve"]


def test_what_a_rule_leaves_out_is_the_default() -> None:
    settings = _PLAN.for_group("orders-eu")

    assert (settings.strategy, settings.dry_run, settings.auto_offset_reset) == (
        "lag-sticky",
        True,
        "earliest",
    )
    assert settings.options == {"counts": "even"}


@pytest.mark.parametrize("group_id", ["orders", "xbilling-1", "orders-eu-2"])
def test_pattern_matches_the_whole_name(group_id: str) -> None:
    settings = _PLAN.for_group(group_id)

    assert (settings.strategy, settings.options) == ("lag-sticky", {})


def test_exclude_wins_over_include() -> None:
    source = SourceConfig(topics_include=("a.*", "b"), topics_exclude=("ab.*",))

    assert [name for name in ("a", "abc", "b", "bc", "xa") if source.wants_topic(name)] == ["a", "b"]


@pytest.mark.parametrize(
    ("group_id", "wanted"),
    [("billing", True), ("lagwise-x", False), ("spark-kafka-source-1", False), ("my-lagwise", True)],
)
def test_own_groups_and_sparks_are_left_out_by_default(group_id: str, wanted: bool) -> None:
    assert Config().source.wants_group(group_id) is wanted


def test_group_with_a_line_break_in_its_name_has_rows_and_rules() -> None:
    assert Config().source.wants_group("two\nlines")
    assert not Config().source.wants_group("lagwise\n")
    assert _PLAN.for_group("billing-two\nlines").dry_run is False


def test_internal_topics_are_left_out_by_default() -> None:
    assert not Config().source.wants_topic("__consumer_offsets")


@pytest.mark.parametrize(
    ("root", "checkpoint", "expected"),
    [("/t", "", "/t/_checkpoint"), ("s3a://b/t/", "", "s3a://b/t/_checkpoint"), ("/t", "/c", "/c")],
)
def test_checkpoint_is_inside_the_root_unless_named(root: str, checkpoint: str, expected: str) -> None:
    assert TablesConfig(root=root, checkpoint=checkpoint).checkpoint_path == expected

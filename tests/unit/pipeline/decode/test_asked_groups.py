"""What coordinators say, as decoded rows."""

from collections import Counter

from pipeline.decode.asked_groups import UNTOLD, asked_rows, listing_rows
from pipeline.kafka.poke_member import CLIENT_ID
from pipeline.kafka.sources.groups.ask import Commit, GroupAnswer, Member
from pipeline.kafka.sources.groups.settings import ListedGroup, Listing
from pipeline.name_filter import NameFilter

GROUP = ListedGroup("g", "classic", "Stable")


def test_commits_in_topics_that_nobody_wants_are_left_out_and_not_counted() -> None:
    commits = (Commit("t", 0, 7, 3), Commit("__own", 0, 1, None))
    answers = [GroupAnswer(group=GROUP, commits=commits), GroupAnswer(group=GROUP, error="silent")]
    counts: Counter[str] = Counter()

    batches = [*asked_rows(answers, NameFilter((".*",), ("__.*",)).admits, counts)]

    found = [row for batch in batches for row in batch.to_pylist() if row["row_kind"] == "commit"]
    assert [(row["topic"], row["committed_offset"], row["leader_epoch"]) for row in found] == [("t", 7, 3)]
    assert counts == {"group": 1, "commit": 1, "group_unanswered": 1}
    # Each is of one family (`source.decoded`).
    kinds = [{*batch["row_kind"].to_pylist()} for batch in batches]
    assert kinds == [{"asked"}, {"group"}, {"commit"}]


def test_no_groups_leave_no_rows_and_a_listing_without_groups_one() -> None:
    assert [*asked_rows([], NameFilter((".*",)).admits, Counter())] == []
    (batch,) = listing_rows(Listing(error="silent"))
    assert [(row["row_kind"], row["error"]) for row in batch.to_pylist()] == [("group_listing", "silent")]


def test_member_of_which_nobody_knows_the_assignment_says_why() -> None:
    members = (Member("a", None, "c", "/h", {}), Member("b", None, "c", "/h", None))
    answers = [GroupAnswer(group=GROUP, members=members)]

    _, groups = asked_rows(answers, NameFilter((".*",)).admits, Counter())

    (row,) = groups.to_pylist(maps_as_pydicts="strict")
    assert [(one["assigned"], one["error"]) for one in row["members"]] == [({}, None), (None, UNTOLD)]


def test_lagwises_own_member_is_none_of_the_group() -> None:
    own, consumer = Member("p", None, CLIENT_ID, "/h", {}), Member("c", None, CLIENT_ID, "/h", {"t": [0]})

    _, groups = asked_rows(
        [GroupAnswer(group=GROUP, members=(own, consumer))], NameFilter((".*",)).admits, Counter()
    )

    (row,) = groups.to_pylist(maps_as_pydicts="strict")
    assert [one["member_id"] for one in row["members"]] == ["c"]

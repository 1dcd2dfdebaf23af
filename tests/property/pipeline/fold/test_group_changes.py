"""The comparison of all groups at once says what a comparison of each group, member by member, says."""

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from assignor.protocol.ranges import format_ranges
from pipeline.fold.group_changes import IS_GONE, KNOWN, group_changes
from pipeline.tables.arrow import arrow_schema
from pipeline.tables.schemas import GROUP_HISTORY
from tests.support.job.frames import member

Row = dict[str, Any]

_HISTORY = arrow_schema(GROUP_HISTORY)
_KNOWN = pa.schema([_HISTORY.field(name).with_nullable(True) for name in KNOWN])
_TOPICS = st.lists(st.sampled_from(["t", "u", "ü"]), unique=True, max_size=2).map(sorted)


@st.composite
def members(draw: st.DrawFn) -> list[Row]:
    """Of one group: no member id and no instance id twice."""
    ids = draw(st.lists(st.sampled_from(["a", "b", "c", "i"]), unique=True, max_size=3))
    instances = draw(st.permutations([None, None, "i", "a"]))
    return [
        member(
            name,
            group_instance_id=instance,
            topics=draw(_TOPICS),
            assigned={"t": draw(st.lists(st.integers(0, 3), unique=True, max_size=2))},
        )
        for name, instance in zip(ids, instances, strict=False)
    ]


@st.composite
def groups(draw: st.DrawFn) -> Row:
    """A group as far as it is known."""
    is_classic = draw(st.booleans())
    state = "Stable" if is_classic else draw(st.sampled_from([None, "Stable", "Reconciling"]))
    return {
        "group_type": "classic" if is_classic else "consumer",
        "state": state,
        "generation": draw(st.none() | st.integers(1, 3)),
        "members": draw(members()) if state else draw(st.sampled_from([None, []])),
        "offsets_partition": 3,
        IS_GONE: draw(st.integers(0, 3)) == 0,
    }


worlds = st.dictionaries(st.sampled_from("gh"), groups())


def table(world: dict[str, Row], schema: pa.Schema) -> pa.Table:
    rows = [
        {"group_id": name, **{column: group.get(column) for column in schema.names if column != "group_id"}}
        for name, group in world.items()
    ]
    return pa.Table.from_pylist(rows, schema=schema)


def identities(group: Row) -> dict[tuple[str, str], Row]:
    return {
        ("i", one["group_instance_id"]) if one["group_instance_id"] else ("m", one["member_id"]): one
        for one in group["members"]
    }


def held(group: Row) -> dict[str, dict[str, str]]:
    return {
        one["member_id"]: {t: format_ranges(numbers) for t, numbers in one["assigned"].items()}
        for one in group["members"]
        if any(one["assigned"].values())
    }


def expected(was: Row | None, now: Row | None, target: Any) -> tuple[Any, ...] | None:
    """`why`, `joined` and `left` of a group; None when nothing is new."""
    if was is None or now is None or was[IS_GONE]:
        was_there = was is not None and not was[IS_GONE]
        word = (
            "gone"
            if now is None and was_there
            else "first_seen"
            if was is None
            else "returned"
            if now
            else None
        )
        return None if word is None else (word, None, None)
    words = [] if was["group_type"] == now["group_type"] else ["type_changed"]
    is_next = now["generation"] is not None and now["generation"] != was["generation"]
    if was["state"] and now["state"] and was["generation"] is None:
        is_next = False
    joined = left = None
    if was["state"] and now["state"] and was["group_type"] == now["group_type"] == "consumer":
        is_next = now["state"] == "Stable" and held(was) != held(now)
    if was["state"] and now["state"]:
        old, new = identities(was), identities(now)
        both = [(old[key], new[key]) for key in old.keys() & new.keys()]
        joined = sorted(new[key]["member_id"] for key in new.keys() - old.keys())
        left = sorted(old[key]["member_id"] for key in old.keys() - new.keys())
        facts = {
            "joined": joined,
            "left": left,
            "replaced": [1 for one, other in both if one["member_id"] != other["member_id"]],
            "resubscribed": [1 for one, other in both if one["topics"] != other["topics"]],
            "moved_by_plan": is_next and held(now) == target != held(was),
        }
        words += [word for word, holds in facts.items() if holds]
    if is_next and not words:
        words = ["rebalanced"]
    return (", ".join(words), joined, left) if words else None


@given(before=worlds, after=worlds, data=st.data())
def test_groups_are_told_apart_as_one_would_by_hand(
    before: dict[str, Row], after: dict[str, Row], data: st.DataObject
) -> None:
    known = [group for group in after.values() if group["state"]]
    target = held(data.draw(st.sampled_from(known))) if known else None

    rows = group_changes(
        table(before, _KNOWN.append(pa.field(IS_GONE, pa.bool_()))),
        table(after, _KNOWN),
        lambda _group: target,
    ).to_pylist()

    wanted = {
        name: expected(before.get(name), after.get(name), target) for name in before.keys() | after.keys()
    }
    assert {row["group_id"]: (row["why"], row["joined"], row["left"]) for row in rows} == {
        name: row for name, row in wanted.items() if row is not None
    }
    for row in rows:
        assert (row["members"] is not None) == (row["state"] is not None)
        assert row["group_type"]

"""Members are told by what people call them; the id stands behind each name."""

from typing import Any

from pipeline.operate.serve.page.names import abbreviated, member_name, member_names

_UUIDS = ("0d5c7e7a-3d7e-4c60-9d0f-5c1c2b6e3f2a", "77a1b0aa-9a1e-44f2-8b1d-0a2b3c4d91bc")
_IDS = [f"billing-1-{one}" for one in _UUIDS]


def member(member_id: str, **more: Any) -> dict[str, Any]:
    return {"member_id": member_id, "group_instance_id": None, "client_id": None, **more}


def test_members_of_one_client_id_have_the_ends_of_their_ids() -> None:
    names = member_names(member(one, client_id="billing-1") for one in _IDS)

    assert list(names.values()) == ["billing-1 …3f2a", "billing-1 …91bc"]


def test_member_without_client_id_is_named_by_its_id_without_the_uuid() -> None:
    assert member_names([member(_IDS[0])]) == {_IDS[0]: "billing-1"}
    assert member_names([member(_UUIDS[0])]) == {_UUIDS[0]: "…3f2a"}


def test_member_that_has_left_is_named_by_its_id_alone() -> None:
    assert member_name(_IDS[1], {}) == "billing-1 …91bc"
    assert member_name("m-1", {}) == "m-1"


def test_ids_in_a_text_give_way_to_names_and_remain_as_titles() -> None:
    names = member_names([member(_IDS[0], client_id="billing-1")])
    text = f"members {_IDS[0]}, {_IDS[1]} stay; member {_IDS[0]}: <b>"

    assert abbreviated(text, names) == (
        f'members <abbr title="{_IDS[0]}">billing-1</abbr>, <abbr title="{_IDS[1]}">billing-1 …91bc</abbr> stay; '
        f'member <abbr title="{_IDS[0]}">billing-1</abbr>: &lt;b&gt;'
    )


def test_word_that_is_a_short_member_id_stays_a_word() -> None:
    assert abbreviated("the plan gains", {"plan": "p"}) == "the plan gains"


def test_name_longer_than_the_id_does_not_take_its_place() -> None:
    member_id = "Zz9bZ0tQ8eW0cYb5P2v3wQ"

    assert abbreviated(member_id, {member_id: "a" * 30}) == member_id

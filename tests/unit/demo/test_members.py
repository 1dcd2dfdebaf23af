from pipeline.demo.members import properties
from pipeline.demo.scene import GROUPS

_GROUPS = {group.group_id: group for group in GROUPS}


def test_static_members_have_an_instance_id_and_others_have_none() -> None:
    static = properties("b:1", _GROUPS["billing"], 0)
    dynamic = properties("b:1", _GROUPS["search"], 1)

    assert static["group.instance.id"] == static["client.id"] == "billing-1"
    assert "group.instance.id" not in dynamic
    assert dynamic["client.id"] == "search-2"


def test_a_group_brings_its_own_properties() -> None:
    assert properties("b:1", _GROUPS["fraud"], 0)["group.protocol"] == "consumer"

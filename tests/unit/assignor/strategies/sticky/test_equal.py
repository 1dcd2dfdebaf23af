from assignor.evaluation import validity
from assignor.strategies.sticky.equal import assign_equal
from tests.support.assignors.groups import by_name, group, member


def test_worked_example_of_the_module_holds() -> None:
    built = group(
        {"t": 7},
        member("a", "t", owned={"t": range(5)}),
        member("b", "t", owned={"t": [5, 6]}),
        member("c", "t"),
    )

    assignment = assign_equal(built)

    assert validity.check(built, assignment, even="group").moves == 2
    assert by_name(built, assignment) == {
        "a": ["t-0", "t-1", "t-2"],
        "b": ["t-5", "t-6"],
        "c": ["t-3", "t-4"],
    }

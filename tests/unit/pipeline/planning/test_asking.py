"""Questions of many are answered together, and each gets its own answer."""

from collections.abc import Generator, Sequence

import pytest

from pipeline.planning.asking import answered

Asking = Generator[int, int, str]


def asks(*questions: int) -> Asking:
    """Asks these one after the other, and returns the answers."""
    answers = []
    for question in questions:
        answer = yield question
        answers.append(answer)
    return " ".join(map(str, answers))


def survives(question: int) -> Asking:
    try:
        return (yield from asks(question))
    except ZeroDivisionError:
        return "survived"


def test_each_gets_its_own_answers_whenever_it_asks() -> None:
    together: list[list[int]] = []

    def doubled(questions: Sequence[int]) -> list[int]:
        together.append([*questions])
        return [2 * question for question in questions]

    assert answered([asks(1, 2, 3), asks(), asks(4), asks(5, 6)], doubled) == ["2 4 6", "", "8", "10 12"]
    assert together == [[1, 4, 5], [2, 6], [3]]


def test_question_that_cannot_be_answered_concerns_nobody_else() -> None:
    def inverse(questions: Sequence[int]) -> list[int]:
        return [100 // question for question in questions]

    assert answered([asks(5), survives(0), asks(20)], inverse) == ["20", "survived", "5"]
    with pytest.raises(ZeroDivisionError):
        answered([asks(0)], inverse)

"""Functions that ask: generators that yield a question, go on with its answer, and return a result.

Each reads as if it answered its question itself; whoever runs many of them answers those of all together.
"""

from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import TypeVar

_Question = TypeVar("_Question")
_Answer = TypeVar("_Answer")
_Result = TypeVar("_Result")


def answered(
    asking: Sequence[Generator[_Question, _Answer, _Result]],
    answer: Callable[[Sequence[_Question]], Sequence[_Answer]],
) -> list[_Result]:
    """The result of each.

    Args:
        asking: What is run; each asks as often as it likes.
        answer: Answers questions, in their order. If that fails for all together, each is answered alone, and who asked
            the one that fails gets the error where it asked.
    """
    results: dict[int, _Result] = {}
    asked: dict[int, _Question] = {}

    def go_on(at: int, step: Callable[[], _Question]) -> None:
        try:
            asked[at] = step()
        except StopIteration as end:
            results[at] = end.value

    for at, one in enumerate(asking):
        go_on(at, partial(next, one))
    while asked:
        askers, questions = list(asked), list(asked.values())
        asked.clear()
        for at, given in zip(askers, _answers(questions, answer), strict=True):
            if isinstance(given, Exception):
                go_on(at, partial(asking[at].throw, given))
            else:
                go_on(at, partial(asking[at].send, given))
    return [results[at] for at in range(len(asking))]


def _answers(
    questions: Sequence[_Question], answer: Callable[[Sequence[_Question]], Sequence[_Answer]]
) -> Sequence[_Answer | Exception]:
    try:
        return answer(questions)
    except Exception as error:  # noqa: BLE001 - a fault that one question brings to light must not stop all others
        if len(questions) == 1:
            return [error]
        return [found for question in questions for found in _answers([question], answer)]

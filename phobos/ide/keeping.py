"""Answers about items, kept while the items are worth keeping: three times as many as the largest document has."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

LEAST = 128
_room = LEAST


def make_room(items: int) -> None:
    """A document of that many items is open."""
    global _room
    _room = max(_room, 3 * items)


def kept(compute: Callable[P, T]) -> Callable[P, T]:
    """Keep what `compute` says of its arguments; what was asked for longest ago goes first."""
    answers: dict[tuple[object, ...], T] = {}

    def known(*arguments: P.args, **keywords: P.kwargs) -> T:
        if arguments in answers:
            answer = answers.pop(arguments)
        else:
            answer = compute(*arguments, **keywords)
        answers[arguments] = answer
        while len(answers) > _room:
            del answers[next(iter(answers))]
        return answer

    known.__doc__ = compute.__doc__
    return known

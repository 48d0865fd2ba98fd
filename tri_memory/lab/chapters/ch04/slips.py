"""Right answers to exercises 04-1 and 04-2 and the typical wrong ones, each with what to say about it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def fitting(weights: list[int], budget: int) -> int:
    return max(n for n in range(len(weights) + 1) if n == 0 or sum(weights[len(weights) - n :]) <= budget)


def passing_over(weights: list[int], budget: int) -> int:
    taken = 0
    for weight in reversed(weights):
        if weight <= budget:
            budget -= weight
            taken += 1
    return taken


FITTING_SLIPS: dict[str, Callable[..., int]] = {
    "That counts from the oldest turn; the newest are the last of the list.": lambda w, b, _: fitting(w[::-1], b),
    "A budget used up to the last token is not broken: use <=, not <.": lambda w, b, _: fitting(w, b - 1),
    "There is a gap: you leave out a big turn and go on behind it. Stop there.": lambda w, b, _: passing_over(w, b),
    "One too many: the turn that breaks the budget stays out.": lambda w, b, _: min(fitting(w, b) + 1, len(w)),
    "You return how many tokens they cost; the question is how many turns.": lambda w, b, _: sum(
        w[len(w) - fitting(w, b) :]
    ),
    "Characters are not tokens: a turn costs count(text), whatever its length.": lambda w, b, lengths: fitting(
        lengths, b
    ),
}


def shortest_head(weights: list[int], high: int, low: int) -> int:
    if sum(weights) <= high:
        return 0
    return next((n for n in range(len(weights)) if sum(weights[n:]) <= low), len(weights) - 1)


def with_the_newest(weights: list[int], high: int, low: int) -> int:
    if sum(weights) <= high:
        return 0
    return next(n for n in range(len(weights) + 1) if sum(weights[n:]) <= low)


PLAN_SLIPS: dict[str, Callable[..., int]] = {
    "The newest turn always stays: it is what the model has to answer.": with_the_newest,
    "You stop at the high line, so the next turn folds again. Go down to low.": lambda w, h, low: shortest_head(
        w, h, h
    ),
    "Nothing to do yet: below the high line nothing is folded.": lambda w, h, low: shortest_head(w, min(h, low), low),
    "On the high line is not above it: use > there, not >=.": lambda w, h, low: shortest_head(w, h - 1, low),
    "Exactly low is low enough: the rest may weigh low or less.": lambda w, h, low: shortest_head(w, h, low - 1),
    "That is how many turns stay. The plan says how many leading turns go.": lambda w, h, low: (
        len(w) - shortest_head(w, h, low) if sum(w) > h else 0
    ),
    "All but the newest is too much: the shortest head that reaches low forgets least.": lambda w, h, low: (
        len(w) - 1 if sum(w) > h else 0
    ),
}


def first_miss(cases: list[Any], expected: list[int], answers: list[int]) -> tuple[Any, int, int]:
    return next(miss for miss in zip(cases, expected, answers, strict=True) if miss[1] != miss[2])


def slip_of(slips: dict[str, Callable[..., int]], cases: list[Any], answers: list[int]) -> str:
    """The explanation of the one mistake that gives just these answers, or ""."""
    return next((why for why, slip in slips.items() if [slip(*case) for case in cases] == answers), "")

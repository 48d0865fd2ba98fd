"""Where an item stands matters when something is cut, or overlooked: three orders against three cuts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import pandas as pd

from tri_memory.agent.budget import at_edges
from tri_memory.contracts import Recollection
from tri_memory.lab.chapters.ch14.failing import keep_both_ends, keep_the_beginning, keep_the_end
from tri_memory.lab.chapters.ch14.people import EARLIER, LANGUAGES, answered, offer, stands
from tri_memory.session.tokens import estimate_tokens

LOST = 0.3  # of the tokens
FIRST = 8  # episodes in the prompt
ORDERS: dict[str, Callable[[Sequence[Recollection]], list[Recollection]]] = {
    "best first": list,
    "best last": lambda best_first: [*best_first][::-1],
    "at the edges": at_edges,
}
LOSSES: dict[str, Callable[[Sequence[int], int], set[int]]] = {
    "still there, front cut (%)": keep_the_end,
    "still there, middle cut (%)": keep_both_ends,
    "still there, end cut (%)": keep_the_beginning,
}


@cache
def asked() -> list[tuple[tuple[Recollection, ...], frozenset[str]]]:
    """Of each question about earlier visits whose answer is among the first eight episodes: these, and who has it."""
    its = [
        (offer(id).episodes[:FIRST], offer(id).asked.gold)
        for language in LANGUAGES
        for id in answered(language)
        if stands(offer(id).asked) == EARLIER
    ]
    return [(found, gold) for found, gold in its if any(one.session_id in gold for one in found)]


@cache
def survivors() -> pd.DataFrame:
    """Of the questions in `asked`: how often the answer is still there after three tenths of the tokens are gone. A row
    an order, a column a loss, and the worst and the mean of the three."""
    its, rows = asked(), {}
    for name, order in ORDERS.items():
        rows[name] = {
            loss: 100 * sum(_survives(order(found), gold, keep) for found, gold in its) / len(its)
            for loss, keep in LOSSES.items()
        }
    table = pd.DataFrame.from_dict(rows, orient="index")
    return table.assign(**{"worst (%)": table.min(axis=1), "mean (%)": table.mean(axis=1)})


def _survives(
    episodes: Sequence[Recollection], gold: frozenset[str], keep: Callable[[Sequence[int], int], set[int]]
) -> bool:
    costs = [estimate_tokens(f"{one.summary}\n") for one in episodes]
    kept = keep(costs, round((1 - LOST) * sum(costs)))
    return any(episodes[place].session_id in gold for place in kept)

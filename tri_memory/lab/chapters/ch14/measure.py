"""The experiment: is the answer in the prompt, and does the built-in model say it, by budget and by share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np
import pandas as pd

from tri_memory.agent.budget import SHARES
from tri_memory.lab.chapters.ch14.people import LANGUAGES, answered, in_prompt, offer, reply, said, stands
from tri_memory.lab.metrics import Interval, interval

BUDGETS = (150, 250, 400, 600, 1_000, 1_600, 2_400)
TIGHT = 400
NAMED_SHARES: dict[str, Mapping[str, float]] = {
    "as shipped": SHARES,
    "conversation first": {"window": 0.85, "facts": 0.05, "preferences": 0.05, "episodes": 0.05},
    "preferences first": {"window": 0.05, "facts": 0.05, "preferences": 0.85, "episodes": 0.05},
    "records first": {"window": 0.05, "facts": 0.85, "preferences": 0.05, "episodes": 0.05},
    "episodes first": {"window": 0.05, "facts": 0.05, "preferences": 0.05, "episodes": 0.85},
}
DRAWS = 1_000


async def against_budget(budgets: Sequence[int] = BUDGETS) -> pd.DataFrame:
    """A row a question and budget, shares as shipped: language, user, budget, tokens, in (the answer is in the prompt),
    right (the built-in model says it)."""
    rows = []
    for language, name in LANGUAGES.items():
        for its in map(offer, answered(language)):
            for budget in budgets:
                filled = its.filled(budget)
                right = said(its.asked.facts, await reply(filled))
                rows.append((name, its.asked.user, budget, filled.tokens, in_prompt(filled, its.asked.facts), right))
    return pd.DataFrame(rows, columns=["language", "user", "budget", "tokens", "in", "right"])


def with_intervals(table: pd.DataFrame, measure: str) -> pd.DataFrame:
    """In per cent a row a language and budget: share, and the 95 % interval from resampling the people."""
    rows = []
    for (language, budget), its in table.groupby(["language", "budget"], sort=False):
        sums = its.groupby("user")[measure].agg(["sum", "count"]).to_numpy()
        picks = np.random.default_rng(14).integers(len(sums), size=(DRAWS, len(sums)))
        drawn = sums[picks].sum(axis=1)
        low, high = np.percentile(100 * drawn[:, 0] / drawn[:, 1], [2.5, 97.5])
        rows.append((language, budget, 100 * sums[:, 0].sum() / sums[:, 1].sum(), low, high))
    return pd.DataFrame(rows, columns=["language", "budget", "share", "low", "high"])


@cache
def _asked_by_share(budget: int) -> pd.DataFrame:
    """A row a question and way to share: user, shares, where, in (per cent)."""
    rows = []
    for its in (offer(id) for language in LANGUAGES for id in answered(language)):
        for name, shares in NAMED_SHARES.items():
            there = 100.0 * in_prompt(its.filled(budget, shares), its.asked.facts)
            rows.append((its.asked.user, name, stands(its.asked), there))
    return pd.DataFrame(rows, columns=["user", "shares", "where", "in"])


def against_shipped(budget: int = TIGHT) -> dict[str, Interval]:
    """By how many points of all questions each other way to share is better than as shipped, over the people."""
    table = _asked_by_share(budget)
    shipped, *others = NAMED_SHARES
    its = {name: table[table.shares == name].reset_index() for name in NAMED_SHARES}
    users = its[shipped].user.tolist()
    return {name: interval((its[name]["in"] - its[shipped]["in"]).to_numpy(), users) for name in others}


def by_share(budget: int = TIGHT) -> pd.DataFrame:
    """In per cent at a tight budget: the answer is in the prompt, a row for each way to share, a column for where the
    answer is to be found, and all questions."""
    table = _asked_by_share(budget)
    wide = table.pivot_table(index="shares", columns="where", values="in", sort=False)
    return wide.assign(**{"all questions": table.groupby("shares")["in"].mean()})


def enough(table: pd.DataFrame, within: float = 3.0) -> dict[str, tuple[int, float, float, float]]:
    """By language: the smallest budget whose right answers are within so many points of the best, those per cent, the
    best, and what share of the largest prompt's tokens that budget takes."""
    found = {}
    for language, its in table.groupby("language", sort=False):
        right = 100 * its.groupby("budget").right.mean()
        tokens = its.groupby("budget").tokens.mean()
        budget = int(right.index[right >= right.max() - within][0])
        found[str(language)] = budget, float(right[budget]), float(right.max()), float(tokens[budget] / tokens.max())
    return found


def beyond_the_bend(table: pd.DataFrame) -> dict[str, tuple[int, int]]:
    """`turned` from each language's own `enough` to the largest budget."""
    return {
        language: turned(table[table.language == language], budget, int(table.budget.max()))
        for language, (budget, *_) in enough(table).items()
    }


def turned(table: pd.DataFrame, small: int, large: int) -> tuple[int, int]:
    """How many questions the larger budget turned from wrong to right, and how many from right to wrong."""
    one, other = (table[table.budget == budget].right.to_numpy() for budget in (small, large))
    return int((~one & other).sum()), int((one & ~other).sum())

"""The step rule with a pencil, and whether its floor ever changes what is archived (claim C14)."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np
import pandas as pd

from tri_memory.lab.claims import Outcome
from tri_memory.recall.decay import ARCHIVE_BELOW, Use, is_archived, step

DAYS, MONTH = 360, 30
CLOSED, OPEN = "an archived memory is not used", "an archived memory may be used"


def pencil(uses_on: Collection[int], last: int = 180) -> pd.DataFrame:
    """A row a month, and a row a use: the day, the weight by the step rule, and whether it would be archived."""
    days = sorted({*range(0, last + 1, MONTH), *uses_on})
    rows = []
    for day in days:
        uses = [Use(day - at) for at in uses_on if at <= day]
        weight = step(day, uses)
        rows.append((day, "use" if day in uses_on else "", weight, is_archived(weight)))
    return pd.DataFrame(rows, columns=["day", "event", "weight", "archived"])


def recalled_on(uses_on: Collection[int], floor: float, archive: str) -> list[bool]:
    """Day by day for 360 days: whether the memory is recalled under the step rule with this floor.

    With the archive `CLOSED`, what falls below 0.5 stays archived. With `OPEN`, uses there count and may bring it back.
    """
    tenths, least, line = 10, round(10 * floor), round(10 * ARCHIVE_BELOW)
    days: list[bool] = []
    for day in range(DAYS + 1):
        if day and day % MONTH == 0:
            tenths = max(least, tenths - 2)
        gone = tenths < line or (archive == CLOSED and bool(days) and not days[-1])
        if day in uses_on and not (gone and archive == CLOSED):
            tenths = min(10, tenths + 1)
        days.append(tenths >= line and not (gone and archive == CLOSED))
    return days


def histories(seeds: Iterable[int], each: int = 100) -> pd.DataFrame:
    """A row a seed: of `each` memories with uses on random days, how many are recalled on other days with a floor of
    0.3 than with none, by what the archive allows."""
    rows = []
    for seed in seeds:
        random = np.random.default_rng(seed)
        chances = 1 / random.uniform(4, 60, each)
        drawn = [frozenset(np.flatnonzero(random.random(DAYS + 1) < chance).tolist()) for chance in chances]
        counts = [
            sum(recalled_on(uses, 0.3, archive) != recalled_on(uses, 0.0, archive) for uses in drawn)
            for archive in (CLOSED, OPEN)
        ]
        rows.append((seed, each, *counts))
    return pd.DataFrame(rows, columns=["seed", "memories", CLOSED, OPEN])


def sentence(table: pd.DataFrame) -> str:
    """What the run says about C14."""
    never, ever = table[CLOSED], table[OPEN]
    return (
        f"the floor changes the days of {int(never.sum())} of {int(table.memories.sum()):,} memories where {CLOSED}, "
        f"and of {ever.min()} to {ever.max()} in {table.memories.iloc[0]} (over {len(table)} seeds) where {OPEN}"
    )


def verdict(table: pd.DataFrame) -> Outcome:
    """`holds` where the floor matters in both, `depends` in one, `fails` in neither."""
    matters = [bool(table[archive].any()) for archive in (CLOSED, OPEN)]
    if all(matters):
        return "holds"
    return "depends" if any(matters) else "fails"

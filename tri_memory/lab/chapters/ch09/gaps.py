"""How many of the next gaps does a TTL of 1.5 times the median bridge? Claim C12, on drawn gaps and on real visits."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

import numpy as np
import pandas as pd

from tri_memory.lab import datasets
from tri_memory.lab.claims import Outcome
from tri_memory.lab.metrics import interval
from tri_memory.recall.decay import ttl_from_gaps

MEDIAN_S = 60.0
HISTORY, SESSION = 200, 10  # gaps that the TTL is taken from; gaps in one session
ENOUGH = 0.9
Draw = Callable[[np.random.Generator, int], "np.ndarray[tuple[int], np.dtype[np.float64]]"]

SPREADS: dict[str, Draw] = {
    "steady": lambda random, n: MEDIAN_S * np.exp(0.2 * random.standard_normal(n)),
    "people typing": lambda random, n: MEDIAN_S * np.exp(1.0 * random.standard_normal(n)),
    "bursts, then a pause": lambda random, n: np.where(random.random(n) < 0.15, 30.0, 1.0) * random.exponential(60, n),
}


def drawn(seeds: Iterable[int]) -> pd.DataFrame:
    """A row a seed and kind of gaps: ttl_s, the share of later gaps bridged, and of sessions of 10 gaps left whole.

    A TTL renewed on each write ends a session at the first gap that is longer.
    """
    rows = []
    for seed in seeds:
        for kind, draw in SPREADS.items():
            random = np.random.default_rng(seed)
            ttl = ttl_from_gaps(times(draw(random, HISTORY)))
            later = draw(random, 300 * SESSION).reshape(-1, SESSION) <= ttl
            rows.append((kind, seed, ttl, float(later.mean()), float(later.all(axis=1).mean())))
    return pd.DataFrame(rows, columns=["gaps", "seed", "ttl_s", "bridged", "whole"])


def times(gaps: Iterable[float], start: datetime = datasets.FIRST_DAY) -> list[datetime]:
    """The moments that lie so many seconds apart, the first one included."""
    return [start, *(start + timedelta(seconds=float(after)) for after in np.cumsum(list(gaps)))]


def visits() -> pd.DataFrame:
    """A row a person of the kit: the TTL in days from the first four visits, the gap to the fifth, and whether it was
    bridged."""
    rows = []
    for language in datasets.LANGUAGES:
        data = datasets.load(language)
        for user in data.users():
            at = [session.started_at for session in data.of(user)]
            ttl, last = ttl_from_gaps(at[:-1]) / 86_400, (at[-1] - at[-2]).total_seconds() / 86_400
            rows.append((language, user, ttl, last, ttl >= last))
    return pd.DataFrame(rows, columns=["language", "user", "ttl_days", "last_gap_days", "bridged"])


def sentence(table: pd.DataFrame, real: pd.DataFrame) -> str:
    """What the run says about C12."""
    parts = [
        f"{kind}: {its.bridged.mean():.0%} of gaps, {its.whole.mean():.0%} of sessions whole"
        for kind, its in table.groupby("gaps", sort=False)
    ]
    its = interval(real.bridged)
    came = f"the fifth visit came in time for {its.mean:.0%} of {len(real)} ({its.low:.0%} to {its.high:.0%})"
    return f"{'; '.join(parts)}; the kit's people: {came}"


def verdict(table: pd.DataFrame, real: pd.DataFrame) -> Outcome:
    """Good is what bridges at least 90 % of the gaps. `holds` where that is sure, by the 95 % interval, of each kind of
    drawn gaps and of the real visits; `fails` where it is surely too few of each."""
    found = [interval(its.bridged) for _, its in table.groupby("gaps")] + [interval(real.bridged)]
    if all(each.low >= ENOUGH for each in found):
        return "holds"
    return "fails" if all(each.high < ENOUGH for each in found) else "depends"

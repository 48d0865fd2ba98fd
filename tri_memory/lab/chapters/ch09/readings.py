"""0.005 a day for 180 days: what is left, by every way to read it (claim C13)."""

from __future__ import annotations

import math

import pandas as pd

from tri_memory.lab.claims import Outcome

RATE, DAYS, CLAIMED = 0.005, 180, 0.9
NEAR = 0.05
DAILY = 3  # the first three rows are decays "per day"


def readings() -> pd.DataFrame:
    """A row a reading: what is reckoned, and what is left of 1."""
    rows = [
        ("per day, continuous: exp(-r t)", math.exp(-RATE * DAYS)),
        ("per day, each day 0.5 % of what is left: (1 - r) ** t", (1 - RATE) ** DAYS),
        ("per day, subtracted: 1 - r t", 1 - RATE * DAYS),
        ("per week, continuous", math.exp(-RATE * DAYS / 7)),
        ("per month, continuous", math.exp(-RATE * DAYS / 30)),
        ("r t alone, which is the part that is lost when subtracted", RATE * DAYS),
    ]
    return pd.DataFrame(rows, columns=["reading", "left"]).round(3)


def sentence(table: pd.DataFrame) -> str:
    """What the arithmetic says about C13."""
    left = ", ".join(f"{value:.2f}" for value in table.left[:DAILY])
    near = table[(table.left - CLAIMED).abs() <= NEAR].reading
    return f"{left} for the three ways to decay per day. Near {CLAIMED}: {'; '.join(near) or 'none'}"


def verdict(table: pd.DataFrame) -> Outcome:
    """`holds` where each way to decay per day leaves 0.85 to 0.95, `fails` where none does."""
    near = (table.left[:DAILY] - CLAIMED).abs() <= NEAR
    if near.all():
        return "holds"
    return "depends" if near.any() else "fails"

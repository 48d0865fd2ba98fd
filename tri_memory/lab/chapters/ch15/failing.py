"""Three ways to a fine number that means little: no baseline, few questions, and a choice made on what is reported."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tri_memory.lab.rankers import Ranker, newest
from tri_memory.lab.report import Report

PROUD: Ranker = newest  # "a memory that answers seven questions in ten"


def even_or_ahead(report: Report, method: str, over: str, measure: str, questions: int, *, draws: int = 4_000) -> float:
    """How often `method` looks at least as good as `over` when so many questions are drawn blindly and asked."""
    first, second = (_values(report, one, measure) for one in (method, over))
    rng = np.random.default_rng(0)
    chosen = np.array([rng.choice(len(first), questions, replace=False) for _ in range(draws)])
    return float((first[chosen].sum(axis=1) >= second[chosen].sum(axis=1)).mean())


def by_person(report: Report, method: str, measure: str) -> pd.Series:
    """The mean of each person's questions, lowest first."""
    rows = report.rows[(report.rows["method"] == method) & report.rows[measure].notna()]
    return rows.groupby("user")[measure].mean().sort_values(kind="stable")


def _values(report: Report, method: str, measure: str) -> np.ndarray:
    rows = report.rows[report.rows["method"] == method]
    return rows[measure].dropna().to_numpy(np.float64)

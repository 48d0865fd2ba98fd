"""Does a memory below 0.5 help? Three readings of claim C21, on the questions of the last day."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tri_memory.lab.chapters.ch07.found import interval
from tri_memory.lab.chapters.ch09.ranking import NEVER_FADES, WAYS, Asked, K, asked
from tri_memory.lab.claims import Outcome
from tri_memory.lab.datasets import LANGUAGES
from tri_memory.recall.decay import is_archived, step

NEEDED = "questions that only such a weight answers"
BY_AGE = "recalled, weight below 0.5"
YOUNG = "recalled, weight 0.5 or more"
BY_COSINE = "recalled, cosine below 0.5"
BLIND = "any own visit, drawn blindly"
READINGS = (NEEDED, BY_AGE, YOUNG, BY_COSINE, BLIND)
TESTED = (NEEDED, BY_AGE, BY_COSINE)
CLAIMED = 12.0  # per cent


def readings() -> pd.DataFrame:
    """Reading, language, cases, share in per cent that helped, low and high of the 95 % interval over users.

    A case is a question, or a memory among the first three. It helps where it holds the answer. The weight is that of
    the step rule without a use.
    """
    rows = []
    for its in map(asked, LANGUAGES):
        for reading, cases in _cases(its).items():
            share = 100 * float(cases.value.mean())
            rows.append((reading, its.corpus.language, len(cases), share, *interval(cases)))
    rows.sort(key=lambda row: READINGS.index(row[0]))
    return pd.DataFrame(rows, columns=["reading", "language", "cases", "share", "low", "high"])


def _cases(its: Asked) -> dict[str, pd.DataFrame]:
    faded = np.array([is_archived(step(age)) for age in its.ages])
    own = its.corpus.own
    blindly = [float(gold[mine].mean()) for gold, mine in zip(its.corpus.gold, own, strict=True)]
    users = [question.user_id for question in its.corpus.questions]
    alone = [float(faded[gold].all()) for gold in its.corpus.gold]
    found = WAYS[NEVER_FADES](its)[:, :K]
    recalled = pd.DataFrame(
        [
            (users[row], float(its.corpus.gold[row, one]), bool(faded[one]), float(its.cosines[row, one]))
            for row, some in enumerate(found)
            for one in some
        ],
        columns=["user", "value", "faded", "cosine"],
    )
    return {
        NEEDED: pd.DataFrame({"user": users, "value": alone}),
        BY_AGE: recalled[recalled.faded],
        YOUNG: recalled[~recalled.faded],
        BY_COSINE: recalled[recalled.cosine < 0.5],
        BLIND: pd.DataFrame({"user": users, "value": blindly}),
    }


def sentence(table: pd.DataFrame) -> str:
    """What the run says about C21."""
    parts = []
    for reading, its in table[table.reading != YOUNG].groupby("reading", sort=False):
        both = ", ".join(
            f"{row.language} {row.share:.0f} % ({row.low:.0f} to {row.high:.0f})" for row in its.itertuples()
        )
        parts.append(f"{reading}: {both}")
    return "share that helped, and 95 % interval. " + "; ".join(parts)


def verdict(table: pd.DataFrame) -> Outcome:
    """`holds` where every reading stays under 12 % with its whole interval, `fails` where none does.

    Where a visit drawn blindly helps as often as that already, no way to choose memories could stay below it: then the
    claim cannot be tested.
    """
    if (table[table.reading == BLIND].share >= CLAIMED).any():
        return "cannot be tested here"
    under = table[table.reading.isin(TESTED)].high < CLAIMED
    if under.all():
        return "holds"
    return "depends" if under.any() else "fails"

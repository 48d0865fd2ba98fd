"""Five visits of a person, ranked for a question asked on the last day: by cosine, and by age as well."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tri_memory.embedding import default_embedder
from tri_memory.lab.chapters.ch07.corpus import Corpus, Mask, corpus
from tri_memory.lab.chapters.ch07.searches import Scores, by_cosine
from tri_memory.lab.datasets import LAST_DAY
from tri_memory.recall.decay import age_in_days, half_life, is_archived, step

K = 3
OLD = 90.0  # days; the step rule archives from here on what was never used
CHANGED, LONG_AGO, LATELY = "changed fact", "told long ago", "told lately"
GROUPS = (CHANGED, LONG_AGO, LATELY)
NEVER_FADES, ARCHIVED, BY_DATE = "cosine alone", "archive below 0.5", "cosine, then newest first"

Weights = NDArray[np.float64]
Ranking = NDArray[np.intp]  # (questions, sessions): numbers of sessions, best first; -1 where none is left


@dataclass(frozen=True)
class Asked:
    """`cosines`, `stale` and those of the corpus are (questions, sessions), `ages` (sessions,) in days on the last day.

    `stale`: a visit of the asker's in which the outdated value was said, and which doesn't hold the answer.
    """

    corpus: Corpus
    cosines: Scores
    ages: Weights
    stale: Mask
    groups: tuple[str, ...]


@cache
def asked(language: str) -> Asked:
    """All answerable questions of one language, "en" or "zh", as asked on the last of the 180 days."""
    its = corpus(language)
    said = ["\n".join(turn.content for turn in session.turns) for session in its.sessions]
    outdated = np.array([[any(old in text for old in q.outdated) for text in said] for q in its.questions])
    ages = np.array([age_in_days(session.started_at, LAST_DAY) for session in its.sessions])
    newest = np.where(its.gold, ages, np.inf).min(axis=1)
    told = tuple(LONG_AGO if age >= OLD else LATELY for age in newest)
    groups = tuple(CHANGED if q.outdated else when for q, when in zip(its.questions, told, strict=True))
    return Asked(its, by_cosine(its, default_embedder()), ages, outdated & its.own & ~its.gold, groups)


def in_a_crowd(language: str) -> Asked:
    """The same questions, and all sixty visits compete, as if one person had made them."""
    its = asked(language)
    return replace(its, corpus=replace(its.corpus, own=np.ones_like(its.corpus.own)))


def multiplied(cosines: Scores, weights: Weights) -> Scores:
    """Cosine times weight; a cosine below 0 stays as it is, since a small weight would lift it."""
    return np.where(cosines > 0, cosines * weights, cosines)


def ranked(its: Asked, weights: Weights) -> Ranking:
    """The competing visits (`corpus.own`) by cosine times weight; what weighs 0 is not found."""
    found = its.corpus.own & (weights > 0)
    scores = np.where(found, multiplied(its.cosines, weights), -np.inf)
    order = np.argsort(-scores, axis=1, kind="stable")
    return np.where(np.take_along_axis(found, order, axis=1), order, -1)


def newest_first(its: Asked, k: int = K) -> Ranking:
    """The first k by cosine, put in order of their dates, newest first. Which ones are among the k, age doesn't say."""
    order = ranked(its, np.ones(len(its.ages)))[:, :k]
    by_date = np.argsort(np.where(order >= 0, its.ages[order], np.inf), axis=1, kind="stable")
    return np.take_along_axis(order, by_date, axis=1)


def by_half_life(days: float) -> Callable[[Asked], Ranking]:
    """A way to rank: cosine times the half-life's weight."""
    return lambda its: ranked(its, np.array([half_life(age, days) for age in its.ages]))


def without_archived(its: Asked) -> Ranking:
    """By cosine, without what the step rule has archived; nothing was used in the 180 days."""
    return ranked(its, np.array([float(not is_archived(step(age))) for age in its.ages]))


WAYS: dict[str, Callable[[Asked], Ranking]] = {
    NEVER_FADES: lambda its: ranked(its, np.ones(len(its.ages))),
    "half-life 30 days": by_half_life(30),
    "half-life 365 days": by_half_life(365),
    ARCHIVED: without_archived,
    BY_DATE: newest_first,
}


def judged(its: Asked, ranking: Ranking, k: int = K) -> pd.DataFrame:
    """A row a question: language, user, question, group, and `value`, whether the first k serve.

    They do where a visit with the answer is among them. For a changed fact it must also stand before every visit with
    the outdated value.
    """
    first = ranking[:, :k]
    rows = []
    for number, question in enumerate(its.corpus.questions):
        mine = [int(place) for place in first[number] if place >= 0]
        answer = _first(mine, its.corpus.gold[number])
        serves = answer < np.inf and answer < _first(mine, its.stale[number])
        group = its.groups[number]
        rows.append((its.corpus.language, question.user_id, question.question_id, group, float(serves)))
    return pd.DataFrame(rows, columns=["language", "user", "question", "group", "value"])


def _first(places: list[int], wanted: NDArray[np.bool_]) -> float:
    return next((at for at, place in enumerate(places) if wanted[place]), np.inf)

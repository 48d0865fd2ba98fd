"""From scores to hits: is the session that answers among the first k, and how sure is the share of it?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import pandas as pd

from tri_memory.lab.chapters.ch07.corpus import Corpus, corpus
from tri_memory.lab.chapters.ch07.searches import USE, WORDS, Scores, by_cosine, by_words, embedders

OWN, ALL = "own 5 visits", "all 60 visits"
ROOMS = (OWN, ALL)
COLUMNS = ["language", "search", "room", "user", "question", "kind", "rank"]


def ranks(corpus: Corpus, search: str, scores: Scores) -> pd.DataFrame:
    """One row a question and room: at which place, from 1, the first session stands that holds the answer.

    `scores` is (questions, sessions), -inf for a session that the search does not find; infinity is then the rank of
    an answer that was not found. In `OWN` only the asker's sessions compete, in `ALL` those of everybody.
    """
    rows = []
    for room in ROOMS:
        competing = np.where(corpus.own, scores, -np.inf) if room == OWN else scores
        order = np.argsort(-competing, axis=1, kind="stable")
        hit = np.take_along_axis(corpus.gold & np.isfinite(competing), order, axis=1)
        first = np.where(hit.any(axis=1), hit.argmax(axis=1) + 1.0, np.inf)
        for question, rank in zip(corpus.questions, first, strict=True):
            its = (question.user_id, question.question_id, question.kind)
            rows.append((corpus.language, search, room, *its, float(rank)))
    return pd.DataFrame(rows, columns=COLUMNS)


@cache
def words_and_cosine() -> pd.DataFrame:
    """`ranks` over the hand-written summaries, both languages: by shared words and by the default embedder."""
    return _searches(lambda name: name == USE)


@cache
def by_embedder() -> pd.DataFrame:
    """`ranks` over the hand-written summaries, both languages: by shared words and by each embedder there is."""
    return _searches(lambda name: True)


def _searches(wanted: Callable[[str], bool]) -> pd.DataFrame:
    tables = []
    for each in (corpus("en"), corpus("zh")):
        tables.append(ranks(each, WORDS, by_words(each)))
        for name, embedder in embedders(each.language).items():
            if wanted(name):
                tables.append(ranks(each, name, by_cosine(each, embedder)))
    return pd.concat(tables, ignore_index=True)


def hits(table: pd.DataFrame, k: int, by: Sequence[str] = ("language", "search")) -> pd.DataFrame:
    """The share of questions answered among the first k in per cent, a row a group, with its 95 % interval.

    The interval comes from 2,000 resamplings of the users, since questions of one person are no independent cases.
    """
    rows = []
    for key, its in table.groupby([*by], sort=False):
        low, high = interval(its.assign(value=its["rank"] <= k))
        rows.append((*key, len(its), 100 * float((its["rank"] <= k).mean()), low, high))
    return pd.DataFrame(rows, columns=[*by, "questions", "share", "low", "high"])


def interval(table: pd.DataFrame) -> tuple[float, float]:
    """Where 95 % of bootstrap samples of users have the mean of `value`, in per cent."""
    sums = table.groupby("user")["value"].agg(["sum", "count"]).to_numpy(np.float64)
    drawn = sums[np.random.default_rng(7).integers(len(sums), size=(2_000, len(sums)))].sum(axis=1)
    low, high = np.percentile(100 * drawn[:, 0] / drawn[:, 1], [2.5, 97.5])
    return float(low), float(high)


def chance(room: str, k: int, language: str = "en") -> float:
    """How often k sessions drawn blindly hold an answer, in per cent."""
    its = corpus(language)
    competing = its.own if room == OWN else np.ones_like(its.own)
    n, right = competing.sum(axis=1), its.gold.sum(axis=1)
    missed = np.ones(len(n))
    for i in range(k):
        missed *= np.maximum(n - right - i, 0) / (n - i)
    return float(100 * (1 - missed).mean())

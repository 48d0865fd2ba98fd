"""Five things that may be embedded for a session, and which of them finds it (claim C06)."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pandas as pd

from tri_memory.embedding import Embedder, default_embedder
from tri_memory.lab.chapters.ch07.corpus import Corpus, corpus
from tri_memory.lab.chapters.ch07.found import ALL, interval, ranks
from tri_memory.lab.chapters.ch07.searches import Scores, by_cosine
from tri_memory.lab.claims import Outcome
from tri_memory.lab.datasets import LANGUAGES
from tri_memory.session.extractive import ExtractiveSummarizer

HAND, EXTRACTIVE = "summary by hand", "extractive summary"
WHOLE, MEAN, BEST = "whole text, one vector", "mean of its turns", "best of its turns"
SUMMARIES, VERBATIM = (HAND, EXTRACTIVE), (WHOLE, MEAN, BEST)
K = 3


def scores(its: Corpus, embedder: Embedder) -> dict[str, Scores]:
    """By view, (questions, sessions): the cosine of the question with what stands for the session."""
    asked = embedder.encode(its.asked)
    turns = [[turn.content for turn in session.turns if turn.content.strip()] for session in its.sessions]
    ends = np.cumsum([len(each) for each in turns])[:-1]
    vectors = np.split(embedder.encode([text for each in turns for text in each]), ends)
    means = np.stack([each.mean(axis=0) for each in vectors])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    return {
        HAND: by_cosine(its, embedder),
        EXTRACTIVE: asked @ embedder.encode(extracted(its.language)).T,
        WHOLE: asked @ embedder.encode(["\n".join(each) for each in turns]).T,
        MEAN: asked @ means.T,
        BEST: np.stack([(asked @ each.T).max(axis=1) for each in vectors], axis=1),
    }


@cache
def extracted(language: str) -> list[str]:
    """The extractive summary of each session; a few seconds, so once for a kernel."""
    summarise = ExtractiveSummarizer()
    its = corpus("en" if language == "English" else "zh")
    return [summarise(session.turns) for session in its.sessions]


@cache
def compare() -> pd.DataFrame:
    """`ranks` of both languages, a `search` for each of the five views, all with the default embedder."""
    tables = []
    for its in map(corpus, LANGUAGES):
        tables += [ranks(its, view, found) for view, found in scores(its, default_embedder()).items()]
    return pd.concat(tables, ignore_index=True)


def differences(table: pd.DataFrame) -> pd.DataFrame:
    """hit@3 over all visits: each summary minus each verbatim view, in percentage points, with its 95 % interval.

    The same questions stand behind both, so the difference is taken question by question.
    """
    rows = []
    its = table[table.room == ALL]
    for language, of_language in its.groupby("language", sort=False):
        hit = of_language.assign(hit=of_language["rank"] <= K).pivot(
            index=["user", "question"], columns="search", values="hit"
        )
        for summary, verbatim in product(SUMMARIES, VERBATIM):
            value = (hit[summary].astype(float) - hit[verbatim].astype(float)).rename("value").reset_index()
            rows.append((language, summary, verbatim, 100 * value["value"].mean(), *interval(value)))
    return pd.DataFrame(rows, columns=["language", "summary", "verbatim", "points", "low", "high"])


def sentence(table: pd.DataFrame) -> str:
    """What the run says about C06."""
    found = differences(table)
    parts = []
    for row in found[found.verbatim == WHOLE].itertuples():
        parts.append(f"{row.language}, {row.summary}: {row.points:+.0f} ({row.low:+.0f} to {row.high:+.0f})")
    ahead, behind = (found.low > 0).sum(), (found.high < 0).sum()
    return (
        f"of {len(found)} comparisons the summary is clearly ahead in {ahead} and clearly behind in {behind}. "
        f"Points of hit@{K} over all visits, against the whole text: {'; '.join(parts)}"
    )


def verdict(table: pd.DataFrame) -> Outcome:
    """`holds` where each summary beats each verbatim view beyond its interval, `fails` where none beats any."""
    found = differences(table)
    if (found.low > 0).all():
        return "holds"
    return "depends" if (found.low > 0).any() else "fails"

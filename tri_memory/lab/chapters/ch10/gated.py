"""What a threshold lets into the prompt: precision, recall, and how often something goes in though nothing answers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cache

import numpy as np
import pandas as pd

from tri_memory.lab.chapters.ch10.memories import ANSWERED, FAR, NEAR, asked_of, memories_of
from tri_memory.lab.chapters.ch10.ranked import table
from tri_memory.recall.calibration import Pair, threshold_for

K = 3  # memories that go into a prompt at most
SEEN = 10  # of the fused order, on which a threshold is calibrated: what a gate has to decide about
RATES = ("precision", "recall", NEAR, FAR)
STEPS = tuple(np.round(np.arange(-0.06, 0.7401, 0.02), 2).tolist())
DRAWS = 2_000
FEW = 20  # memories in the prompts of all people together


@cache
def of(language: str, embedder: str) -> pd.DataFrame:
    """The part of the table, in fused order within each question."""
    its = table()
    its = its[(its.language == language) & (its.embedder == embedder)]
    return its.sort_values(["user", "question", "fused"], kind="stable")


def questions(its: pd.DataFrame, threshold: float, k: int = K) -> pd.DataFrame:
    """A row a question: user, kind, how many of its memories go in, how many of these answer.

    As `hybrid_recall` does it: the gate first, then the first `k` in fused order of what it let in.
    """
    passed = its[its.cosine_value >= threshold]
    chosen = passed[passed.groupby(["user", "question"], sort=False).cumcount() < k]
    counts = chosen.groupby(["user", "question"], sort=False).gold.agg(["size", "sum"])
    every = its.drop_duplicates(["user", "question"]).set_index(["user", "question"])[["kind"]]
    every[["let_in", "right"]] = counts.reindex(every.index, fill_value=0).to_numpy(int)
    return every.reset_index()


def rates(asked: pd.DataFrame) -> dict[str, float]:
    """In per cent. precision: of what went in for the person's own questions, the share that answers. recall: of the
    answered questions, the share with an answer in the prompt. For the two kinds that nothing answers, how often
    something went in. NaN where there was nothing to divide by."""
    by_user = _sums(asked)
    return dict(zip(RATES, _divide(by_user.sum(axis=0)), strict=True))


def intervals(asked: pd.DataFrame) -> dict[str, tuple[float, float]]:
    """Where 95 % of 2,000 resamplings of the users have each rate, in per cent."""
    by_user = _sums(asked)
    draws = np.random.default_rng(10).integers(len(by_user), size=(DRAWS, len(by_user)))
    drawn = _divide(by_user[draws].sum(axis=1))
    return {name: _middle(column) for name, column in zip(RATES, drawn.T, strict=True)}


def _middle(values: np.ndarray) -> tuple[float, float]:
    known = values[np.isfinite(values)]
    if not len(known):
        return math.nan, math.nan
    low, high = np.percentile(known, [2.5, 97.5])
    return float(low), float(high)


def _sums(asked: pd.DataFrame) -> np.ndarray:
    """(users, 4 rates, 2): what each rate divides, and by what."""
    own, found, some = asked.kind != FAR, asked.right > 0, asked.let_in > 0
    parts = [(asked.right * own, asked.let_in * own), (found, asked.kind == ANSWERED)]
    parts += [(some & (asked.kind == kind), asked.kind == kind) for kind in (NEAR, FAR)]
    frame = pd.DataFrame({2 * i + j: part.astype(float) for i, pair in enumerate(parts) for j, part in enumerate(pair)})
    return frame.groupby(asked.user).sum().to_numpy().reshape(-1, len(RATES), 2)


def _divide(sums: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.asarray(100 * sums[..., 0] / sums[..., 1])


@cache
def sweep(language: str, embedder: str) -> pd.DataFrame:
    """A row a threshold of `STEPS` and rate: value, low, high, all in per cent; no precision of fewer than twenty."""
    rows = []
    for threshold in STEPS:
        asked = questions(of(language, embedder), threshold)
        values, between = rates(asked), intervals(asked)
        if asked.let_in[asked.kind != FAR].sum() < FEW:
            values["precision"], between["precision"] = math.nan, (math.nan, math.nan)
        rows += [(threshold, name, values[name], *between[name]) for name in RATES]
    return pd.DataFrame(rows, columns=["threshold", "rate", "value", "low", "high"])


def seen(its: pd.DataFrame) -> pd.DataFrame:
    """The pairs that a gate has to decide about: the first ten in fused order of the person's own questions."""
    return its[(its.fused <= SEEN) & (its.kind != FAR)]


def pairs(people: Sequence[str], language: str, embedder: str) -> list[Pair]:
    """The same pairs of these people as texts, for `calibrate`."""
    rows = seen(of(language, embedder))
    asked = {each.id: each.question for user in people for each in asked_of(user)}
    return [
        Pair(asked[row.question], memories_of(row.user)[row.memory].text, bool(row.gold))
        for row in rows[rows.user.isin(people)].itertuples()
    ]


def calibrated(its: pd.DataFrame, embedder: str, precision: float | None = None) -> float:
    """The threshold with the best F1 over these people's pairs, or for a wanted precision."""
    pairs = seen(its)
    return threshold_for(pairs.cosine_value, pairs.gold.tolist(), embedder, precision=precision).value


def splits(people: Sequence[str], seeds: Iterable[int]) -> Iterable[tuple[int, set[str]]]:
    """(seed, the half of the people on whom the threshold is found)."""
    for seed in seeds:
        yield seed, set(np.random.default_rng(seed).permutation(people)[: len(people) // 2].tolist())


def on_other_people(language: str, embedder: str, seeds: Iterable[int]) -> pd.DataFrame:
    """A row a seed: the threshold found on six people, and the rates on the other six."""
    its, rows = of(language, embedder), []
    for seed, found_on in splits(sorted(set(its.user)), seeds):
        mine = its.user.isin(found_on)
        threshold = calibrated(its[mine], embedder)
        rows.append((language, embedder, seed, threshold, *rates(questions(its[~mine], threshold)).values()))
    return pd.DataFrame(rows, columns=["language", "embedder", "seed", "threshold", *RATES])


def everywhere(seeds: Iterable[int]) -> pd.DataFrame:
    """`on_other_people` for each language and embedder that this machine has."""
    seeds, its = list(seeds), table()
    ways = its[["language", "embedder"]].drop_duplicates().itertuples(index=False)
    return pd.concat([on_other_people(way.language, way.embedder, seeds) for way in ways], ignore_index=True)

"""Claim C11: does a gate at 0.65 lift the share of right answers, and what does it cost?

What counts as resolved: the built-in model, given what went in, says every fact of the answer; and where nothing
answers, it says that it doesn't find it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import cache
from statistics import NormalDist, median

import numpy as np
import pandas as pd

from tri_memory.contracts import Recollection
from tri_memory.embedding import default_embedder
from tri_memory.episodic.hybrid import hybrid_recall
from tri_memory.lab.chapters.ch07.searches import HASHING, MINILM
from tri_memory.lab.chapters.ch10.failing import remembered, reply
from tri_memory.lab.chapters.ch10.gated import DRAWS, K, of
from tri_memory.lab.chapters.ch10.kept import embedders
from tri_memory.lab.chapters.ch10.memories import FAR, LANGUAGES, Asked, asked_of, memories_of
from tri_memory.lab.claims import Outcome
from tri_memory.lab.survival import stands_in
from tri_memory.recall.calibration import HISTORIC, Threshold
from tri_memory.recall.gate import Candidate, Gate

CLAIMED = (0.54, 0.73)
CLAIMED_MS = 87
GATES = {"no gate": -math.inf, "gate at 0.65": HISTORIC.value}


def cases_needed(before: float, after: float, power: float = 0.8) -> int:
    """Conversations in each of two groups until rates that differ so are told apart: two-sided, 5 %, by the normal
    approximation (Fleiss, Levin and Paik 2003, Statistical Methods for Rates and Proportions)."""
    z = NormalDist().inv_cdf(0.975) + NormalDist().inv_cdf(power)
    spread = before * (1 - before) + after * (1 - after)
    return math.ceil(z * z * spread / (after - before) ** 2)


async def ask() -> pd.DataFrame:
    """A row a person's own question, embedder with a model and gate: whether an answer went in, and whether the reply
    is right."""
    rows = []
    for language in LANGUAGES.values():
        for embedder in embedders(language):
            its = of(language, embedder)
            for (user, id), memories in its[its.kind != FAR].groupby(["user", "question"], sort=False):
                if embedder != HASHING:
                    rows += [(language, embedder, *row) for row in await _with_and_without(str(user), id, memories)]
    columns = ["language", "embedder", "user", "question", "gate", "answer_in", "right"]
    return pd.DataFrame(rows, columns=columns)


async def _with_and_without(user: str, id: str, memories: pd.DataFrame) -> list[tuple[str, str, str, bool, bool]]:
    asked, rows = _asked(user)[id], []
    refusal = await reply(asked.question, [])
    for gate, least in GATES.items():
        chosen = memories[memories.cosine_value >= least].head(K)
        text = await reply(asked.question, _as_recalled(user, chosen)) if len(chosen) else refusal
        right = all(stands_in(fact, text) for fact in asked.facts) if asked.gold else text == refusal
        rows.append((user, id, gate, bool(chosen.gold.any()), right))
    return rows


@cache
def _asked(user: str) -> dict[str, Asked]:
    return {each.id: each for each in asked_of(user)}


def _as_recalled(user: str, chosen: pd.DataFrame) -> list[Recollection]:
    memories = memories_of(user)
    return [
        Recollection(memories[row.memory].key, memories[row.memory].text, row.cosine_value, memories[row.memory].at)
        for row in chosen.itertuples()
    ]


def shares(asked: pd.DataFrame) -> pd.DataFrame:
    """In per cent, a row a language and embedder: right without and with the gate, the change with its 95 % interval
    from 2,000 resamplings of the users, and the questions with an answer in the prompt."""
    rows = []
    for key, its in asked.groupby(["language", "embedder"], sort=False):
        none, gated = (its[its.gate == gate] for gate in GATES)
        change = gated.right.to_numpy(float) - none.right.to_numpy(float)
        sums = pd.DataFrame({"user": none.user.to_numpy(), "change": change}).groupby("user").change
        table = sums.agg(["sum", "count"]).to_numpy()
        drawn = table[np.random.default_rng(11).integers(len(table), size=(DRAWS, len(table)))].sum(axis=1)
        low, high = np.percentile(drawn[:, 0] / drawn[:, 1], [2.5, 97.5])
        parts = [none.right.mean(), gated.right.mean(), change.mean(), low, high]
        rows.append((*key, *(100 * x for x in [*parts, none.answer_in.mean(), gated.answer_in.mean()])))
    columns = ["language", "embedder", "right", "right_gated", "change", "low", "high", "answer_in", "answer_in_gated"]
    return pd.DataFrame(rows, columns=columns)


def gate_ms(candidates: int = 30, times: int = 200) -> float:
    """What judging one question's candidates takes, the median in ms."""
    at = memories_of("en-shop-01")[0].at
    those = [Candidate(str(i), "a memory", at, i / candidates) for i in range(candidates)]
    gate = Gate(Threshold(0.5, "any"), "any")
    return _median_ms(lambda: gate.judge(those), times)


async def recall_ms(times: int = 30) -> tuple[float, float]:
    """A whole hybrid recall among one person's memories, and the embedding of its question alone; medians in ms."""
    user = "en-shop-01"
    store, embedder = await remembered([user]), default_embedder()
    whole, alone = [], []
    for asked in asked_of(user)[:times]:
        start = time.perf_counter()
        await hybrid_recall(asked.question, user_id=user, episodes=store, embedder=embedder)
        between = time.perf_counter()
        embedder.encode([asked.question])
        whole.append(between - start)
        alone.append(time.perf_counter() - between)
    return 1_000 * median(whole), 1_000 * median(alone)


def _median_ms(call: Callable[[], object], times: int) -> float:
    took = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        took.append(time.perf_counter() - start)
    return 1_000 * median(took)


def sentence(found: pd.DataFrame, judging_ms: float) -> str:
    """What the run says about C11."""
    parts = [
        f"{row.language}, {row.embedder}: {row.right:.0f} % right without a gate, {row.right_gated:.0f} % with 0.65 "
        f"({row.change:+.0f} points, {row.low:+.0f} to {row.high:+.0f})"
        for row in found.itertuples()
    ]
    its_own = "" if _of_minilm(found) is not None else f" The embedder of 0.65, {MINILM}, is not installed here."
    return f"{'; '.join(parts)}. Judging 30 candidates takes {judging_ms:.3f} ms.{its_own}"


def verdict(found: pd.DataFrame, judging_ms: float) -> Outcome:
    """By the embedder that 0.65 belongs to; without it the number can't be tested, whatever it does to others.

    `holds` where right answers clearly rise, the claimed 19 points lie within reach of the interval, and judging takes
    no longer than claimed. `fails` where no rise is sure and the claimed one is out of reach. `depends` between: a
    smaller rise than claimed, say, or too wide an interval to tell.
    """
    its = _of_minilm(found)
    if its is None:
        return "cannot be tested here"
    rises, reaches = its.low > 0, its.high >= 100 * (CLAIMED[1] - CLAIMED[0])
    if rises and reaches and judging_ms <= CLAIMED_MS:
        return "holds"
    return "depends" if rises or reaches else "fails"


def _of_minilm(found: pd.DataFrame) -> pd.Series | None:
    its = found[found.embedder == MINILM]
    return None if its.empty else its.iloc[0]

"""Does it work? Every way to recall, asked the same questions about the same past, with the baselines always beside.

`evaluate(path)` reads a file of yours in any of the formats of `loaders.py` and returns a `Report`. What it measures is
whether the memory that answers was found; whether a model then answers well is another question.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tqdm.auto import tqdm

from tri_memory.contracts import require_count, shown
from tri_memory.embedding import Embedder, default_embedder
from tri_memory.lab.admission import Answer, gated, why_no_gate
from tri_memory.lab.datasets import Dataset, Question
from tri_memory.lab.history import History, Level, gold_of, history_of
from tri_memory.lab.known_items import known_items, not_borrowed, off_topic, quoted
from tri_memory.lab.loaders import load_any
from tri_memory.lab.rankers import CONVERSATION, EVERYTHING, RANKERS, Ask, Asked, Ranker
from tri_memory.lab.report import Report
from tri_memory.session.tokens import estimate_tokens

UNANSWERABLE = "unanswerable"
GATED = "conversation, gated"
KS: dict[Level, tuple[int, ...]] = {"turn": (5, 10), "session": (1, 3)}


def evaluate(
    source: str | Path | Dataset,
    *,
    questions: Iterable[tuple[str, str]] | None = None,
    level: Level | None = None,
    ks: Sequence[int] | None = None,
    embedder: Embedder | None = None,
    rankers: Mapping[str, Ranker] = RANKERS,
    progress: bool = True,
) -> Report:
    """A report on how well each ranker finds what answers the questions of a file or dataset.

    `questions` are your own, as (question, quote from the turn that answers, or ""). Without them the file's are asked;
    a chat that has none gets simulated ones, and the report says so. `level` is "turn", or "session" where the file
    marks no turns. The largest of `ks`, 10 turns or 3 sessions unless given, is how many memories go into the prompt.
    Where "conversation" is among the rankers, it stands there a second time behind a gate. Raises ValueError for a
    broken file, naming it, and where no question can be judged.
    """
    dataset, simulated = _asked(source, questions)
    level = level or ("turn" if any(one.gold_turns for one in dataset.questions) else "session")
    if level not in KS:
        raise ValueError(f'level must be "turn" or "session"; got {shown(level)}')
    cuts = _cuts(KS[level] if ks is None else ks)
    judgeable = [one for one in dataset.questions if one.kind == UNANSWERABLE or gold_of(one, level)]
    left_out = len(dataset.questions) - len(judgeable)
    if dataset.questions and all(one.kind == UNANSWERABLE for one in dataset.questions):
        raise ValueError("every question is one that nothing answers; give at least one with a quote of its answer")
    if all(one.kind == UNANSWERABLE for one in judgeable):
        raise ValueError(f'none of the {len(dataset.questions)} questions has gold on the level "{level}"')
    judgeable += off_topic(dataset)
    hidden = bool(os.environ.get("TQDM_DISABLE"))
    bar = tqdm(total=len(judgeable), desc="questions", disable=not progress or hidden, leave=False)
    with bar:
        answers = list(_answers(replace(dataset, questions=tuple(judgeable)), level, cuts[-1], embedder, rankers, bar))
    best = [answer for answer in answers if answer.method == CONVERSATION]
    answers += gated(best, GATED)
    name = "the dataset" if isinstance(source, Dataset) else Path(source).name
    notes = _notes(not_borrowed(dataset), why_no_gate(best))
    return Report(name, level, tuple(cuts), answers, simulated, left_out, notes)


def _notes(shared: int, no_gate: str) -> tuple[str, ...]:
    left = f"{shared} times a question of somebody else was not asked as off topic: this person may answer it"
    return (*([left] if shared else []), *([no_gate] if no_gate else []))


def _cuts(ks: Sequence[int]) -> list[int]:
    if not ks:
        raise ValueError("ks must hold at least one number of memories, such as 5; got none")
    return sorted({require_count("an item of ks", k, least=1) for k in ks})


def _asked(source: str | Path | Dataset, questions: Iterable[tuple[str, str]] | None) -> tuple[Dataset, bool]:
    """The dataset with the questions to ask, and whether they are simulated."""
    dataset = source if isinstance(source, Dataset) else load_any(source)
    if questions is not None:
        return quoted(dataset, questions), False
    return (dataset, False) if dataset.questions else (known_items(dataset), True)


def _answers(
    dataset: Dataset, level: Level, k: int, embedder: Embedder | None, rankers: Mapping[str, Ranker], bar: tqdm
) -> Iterator[Answer]:
    embedder = embedder or default_embedder()
    for user in dataset.users():
        own = [question for question in dataset.questions if question.user_id == user]
        if own:
            history = history_of(user, dataset, level, embedder)
            asks = {name: ranker(history) for name, ranker in rankers.items()}
            costs = [estimate_tokens(text) for text in history.texts]
            for question in own:
                cosines = _cosines(history, Asked(question.question, embedder))
                for name, ask in asks.items():
                    most = len(costs) if name == EVERYTHING else k
                    yield _answer(name, ask, question, history, level, most, cosines, costs)
                bar.update()


def _answer(
    method: str,
    ask: Ask,
    question: Question,
    history: History,
    level: Level,
    most: int,
    cosines: NDArray[np.float32],
    costs: list[int],
) -> Answer:
    started = time.perf_counter()
    found = ask(Asked(question.question, history.embedder))[:most]
    ms = 1e3 * (time.perf_counter() - started)
    gold = frozenset(() if question.kind == UNANSWERABLE else gold_of(question, level))
    nearest = float(cosines[found].max()) if found else -1.0
    return Answer(
        method, question, gold, tuple(history.ids[m] for m in found), nearest, sum(costs[m] for m in found), ms
    )


def _cosines(history: History, asked: Asked) -> NDArray[np.float32]:
    """(memories,) the cosine of the row of each that is nearest to the question."""
    best = np.full(len(history.ids), -1, np.float32)
    np.maximum.at(best, history.memory_of, history.vectors @ asked.vector)
    return best

"""How far the kit's best recall gets on published conversations, held against goals that were set beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from tri_memory.lab.chapters.ch10.kept import usual
from tri_memory.lab.datasets import Dataset
from tri_memory.lab.evaluation import GATED, evaluate
from tri_memory.lab.history import Level
from tri_memory.lab.public import reported
from tri_memory.lab.rankers import BM25, CONVERSATION, COSINE, NEWEST, RANKERS
from tri_memory.lab.report import OFF_TOPIC, UNANSWERABLE

GOALS: dict[Level, dict[str, float]] = {"turn": {"any@5": 0.75, "any@10": 0.85}, "session": {"any@3": 0.90}}
METHODS = (NEWEST, BM25, COSINE, CONVERSATION)
ADMITTED = (UNANSWERABLE, OFF_TOPIC)
COLUMNS = ["file", "memories", "measure", *METHODS, "goal", "reached", GATED, *(f"gated, {each}" for each in ADMITTED)]


def goals(files: Sequence[Path | Dataset]) -> pd.DataFrame:
    """A line a file, level and goal; `reached` is about "conversation". Levels without gold are left out.

    Without a gate something is admitted for every question, so the same recall behind one stands beside, with how often
    it still admits something where there is no answer.
    """
    rows: list[tuple[object, ...]] = []
    for number, file in enumerate(files):
        dataset = reported(file)
        name = file.name if isinstance(file, Path) else f"dataset {number}"
        for level, measures in GOALS.items():
            if level == "session" or any(question.gold_turns for question in dataset.questions):
                rows += [(name, f"{level}s", *row) for row in _reached(dataset, level, measures)]
    return pd.DataFrame(rows, columns=COLUMNS)


def _reached(dataset: Dataset, level: Level, measures: dict[str, float]) -> list[tuple[object, ...]]:
    rankers = {method: RANKERS[method] for method in METHODS}
    report = evaluate(dataset, level=level, embedder=usual(), rankers=rankers)
    found: list[tuple[object, ...]] = []
    for measure, goal in measures.items():
        values = [report.of(method, measure) for method in METHODS]
        reached = "reached" if values[-1].mean >= goal else "not reached"
        gated = [str(report.of(GATED, each)) for each in (measure, *ADMITTED)]
        found.append((measure, *map(str, values), goal, reached, *gated))
    return found

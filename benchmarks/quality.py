"""How well the kit recalls, beside every baseline: its own data, and the published files that TRI_MEMORY_DATA names.

Goals: sessions hit@3 of at least 0.90 (questions that name the date themselves apart); LoCoMo's turns any@5 of at least
0.75 and any@10 of at least 0.85, and clearly ahead of BM25 and of cosine. Nothing reported here was tuned on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rich.table import Table

from tri_memory.lab.ablation import ABLATIONS
from tri_memory.lab.datasets import LANGUAGES, Dataset, load
from tri_memory.lab.evaluation import evaluate
from tri_memory.lab.history import Level
from tri_memory.lab.public import FOLDER, public_files, reported
from tri_memory.lab.rankers import BM25, CONVERSATION, COSINE
from tri_memory.lab.report import Report

GOALS: dict[Level, dict[str, float]] = {"session": {"any@3": 0.90}, "turn": {"any@5": 0.75, "any@10": 0.85}}


def tables() -> Iterator[Table | str]:
    for name, dataset, goals in _sets():
        levels: list[Level] = ["turn", "session"] if any(one.gold_turns for one in dataset.questions) else ["session"]
        for level in levels:
            report = evaluate(dataset, level=level, progress=False)
            yield _table(f"{name}, {report.headline.partition(': ')[2]}", report)
            yield from _verdicts(report, goals.get(level, {}))
        if "turn" in levels:
            yield _table(f"{name}, turns, without one part each", evaluate(dataset, rankers=ABLATIONS, progress=False))
    if not public_files():
        yield f"{FOLDER} is not set: name a folder with LoCoMo or MemoryBank files to see them here as well"


def _sets() -> Iterator[tuple[str, Dataset, dict[Level, dict[str, float]]]]:
    for language in LANGUAGES:
        yield f"the kit's own data ({language})", load(language), {"session": GOALS["session"]}
    for path in public_files():
        dataset = reported(path)
        undated = tuple(one for one in dataset.questions if one.gold_turns or one.kind != "time")
        yield path.name, replace(dataset, questions=undated), GOALS


def _table(title: str, report: Report) -> Table:
    shown = report.shown()
    table = Table("method", *shown.columns, title=title)
    for method, row in shown.iterrows():
        table.add_row(str(method), *row)
    return table


def _verdicts(report: Report, goals: dict[str, float]) -> Iterator[str]:
    for measure, goal in goals.items():
        found = report.of(CONVERSATION, measure)
        reached = "reached" if found.mean >= goal else "not reached"
        leads = ", ".join(f"{report.lead(CONVERSATION, other, measure)} ahead of {other}" for other in (BM25, COSINE))
        yield f"{measure} {found}, goal {goal:.2f} {reached}; {leads}"

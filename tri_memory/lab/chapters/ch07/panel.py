"""The panel of chapter 07: one question, the scores of its asker's visits, and where k and a threshold cut."""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.figure import Figure

from tri_memory.embedding import default_embedder
from tri_memory.lab import datasets
from tri_memory.lab.datasets import Question
from tri_memory.lab.panel import Choice, Panel, Slider, panel
from tri_memory.lab.plots import BLUE, GREEN, GREY, ORANGE, axes

PICKED = (
    "en-coach-q21",
    "en-shop-q04",
    "en-device-q41",
    "en-shop-q05",
    "zh-device-q46",
    "zh-coach-q05",
    "zh-shop-q17",
    "zh-coach-q06",
)


@dataclass(frozen=True)
class Found:
    """The asker's visits in order of score: (day of the visit, score, whether it holds the answer).

    `taken` is how many of them go into the prompt.
    """

    question: str
    visits: tuple[tuple[str, float, bool], ...]
    k: int
    least: float
    taken: int

    @property
    def answerable(self) -> bool:
        return any(gold for _, _, gold in self.visits)

    @property
    def answered(self) -> bool:
        return any(gold for _, _, gold in self.visits[: self.taken])


def questions() -> dict[str, Question]:
    """Those of the panel, by what is asked: four in each language, and one of each that no visit answers."""
    every = [question for language in datasets.LANGUAGES for question in datasets.load(language).questions]
    by_id = {question.question_id: question for question in every}
    open_ones = [q for q in every if q.kind == "unanswerable"]
    nothing = [next(q for q in open_ones if q.user_id.startswith(lang)) for lang in datasets.LANGUAGES]
    return {q.question: q for q in [*(by_id[id] for id in PICKED), *nothing]}


def search(question: str, k: int, least: float) -> Found:
    """The panel's model: the k nearest visits of the person who asks, without those that score less than `least`."""
    asked = questions()[question]
    visits = datasets.load(asked.user_id[:2]).of(asked.user_id)
    vectors = default_embedder().encode([question, *(visit.summary for visit in visits)])
    scores = vectors[1:] @ vectors[0]
    found = [
        (f"{visits[i].started_at:%d %b}", float(scores[i]), visits[i].session_id in asked.gold_sessions)
        for i in sorted(range(len(visits)), key=lambda i: -scores[i])
    ]
    taken = sum(score >= least for _, score, _ in found[:k])
    return Found(question, tuple(found), k, least, taken)


def say(found: Found) -> str:
    """The panel's sentence."""
    if not found.answerable:
        what = "No visit answers this."
    elif found.answered:
        what = "The one with the answer is among them."
    else:
        what = "The one with the answer is not among them."
    return f"{found.question} {found.taken} of {len(found.visits)} visits go into the prompt. {what}"


def draw(found: Found) -> Figure:
    """A bar a visit, the best on top; pale ones stay outside the prompt."""
    figure, ax = axes(9.2, 3.7, title="The asker's visits, nearest first", xlabel="cosine of question and summary")
    for row, (_, score, gold) in enumerate(found.visits):
        ax.barh(row, score, color=GREEN if gold else BLUE, alpha=1 if row < found.taken else 0.3, height=0.7)
        ax.text(max(score, 0) + 0.01, row, f"{score:.2f}" + ("  holds the answer" if gold else ""), va="center")
    if found.k < len(found.visits):
        ax.axhline(found.k - 0.5, color=GREY, linestyle="--", linewidth=1.6)
        ax.text(0.54, found.k - 0.55, f"k = {found.k}", ha="right", va="bottom", color=GREY)
    ax.axvline(found.least, color=ORANGE, linewidth=2)
    ax.text(found.least + 0.005, len(found.visits) - 0.45, "least score", color=ORANGE, va="bottom", fontsize=11)
    ax.set_yticks(range(len(found.visits)), [day for day, _, _ in found.visits])
    ax.set(xlim=(-0.1, 0.55), ylim=(len(found.visits) - 0.4, -0.6))
    ax.grid(False)
    return figure


def search_panel() -> Panel:
    """The panel itself."""
    return panel(
        search,
        draw,
        say,
        [
            Choice("question", list(questions()), label="question"),
            Slider("k", 1, 5, 3, label="k, at most"),
            Slider("least", 0, 0.5, 0, 0.02, label="least score"),
        ],
        title="How many memories go into the prompt",
    )

"""The panel: one question, its candidates with the gate's reasons, and what that threshold does to all questions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tri_memory.lab.chapters.ch07.searches import USE
from tri_memory.lab.chapters.ch10.gated import K, of, questions, rates
from tri_memory.lab.chapters.ch10.kept import embedders
from tri_memory.lab.chapters.ch10.memories import ANSWERED, FAR, LANGUAGES, NEAR, Asked, asked_of, memories_of, users
from tri_memory.lab.chapters.ch10.plots import LOOKS, draw_rates
from tri_memory.lab.panel import Choice, Panel, Slider, panel
from tri_memory.lab.plots import BLUE, GREEN, GREY, ORANGE, row_of_axes
from tri_memory.recall.calibration import Threshold
from tri_memory.recall.gate import Candidate, Gate, Hit

LISTED = 7  # candidates
PICKED = ("en-device-q42", "en-shop-q35", "zh-shop-q44", "zh-coach-q19")
NEAR_MISSES = (
    "How much did Pell's charge me for fitting the first new bridge?",
    "我那把左手刀用的是什么钢，你说过吗？",
)
WHAT = {ANSWERED: "answered", NEAR: "nearly talked about", FAR: "never talked about"}


@dataclass(frozen=True)
class Shown:
    """`hits` in fused order, the first seven, with whether each of them answers; `let_in` of them go into the prompt.
    `all_questions` are the rates of the language, in per cent."""

    asked: Asked
    language: str
    embedder: str
    threshold: float
    hits: tuple[tuple[Hit, bool], ...]
    let_in: tuple[int, ...]
    all_questions: dict[str, float]


def picked() -> dict[str, Asked]:
    """By what is asked: in each language a paraphrase, an id, a question that was nearly talked about, and one that
    somebody else asked about another thing."""
    found = {}
    for code in LANGUAGES:
        every = [each for user in users(code) for each in asked_of(user)]
        near = [each for each in every if each.question in NEAR_MISSES]
        far = next(each for each in every if each.kind == FAR)
        answered = [next(each for each in every if each.id == id) for id in PICKED if id.startswith(code)]
        found.update({each.question: each for each in [*answered, *near, far]})
    return found


def gate(question: str, embedder: str, threshold: float) -> Shown:
    """The panel's model. Raises ValueError for an embedder that doesn't know the question's language."""
    asked = picked()[question]
    language = LANGUAGES[asked.user[:2]]
    if embedder not in embedders(language):
        raise ValueError(f"{embedder} knows no {language}: choose another question or embedder")
    its = of(language, embedder)
    own = its[(its.user == asked.user) & (its.question == asked.id)]
    judged = Gate(Threshold(threshold, embedder), embedder).judge(
        _candidate(asked.user, row) for row in own.itertuples()
    )
    let_in = tuple([i for i, hit in enumerate(judged) if hit.verdict == "in"][:K])
    hits = tuple(zip(judged[:LISTED], own.gold.tolist()[:LISTED], strict=True))
    return Shown(asked, language, embedder, threshold, hits, let_in, rates(questions(its, threshold)))


def _candidate(user: str, row: object) -> Candidate:
    memory, words = memories_of(user)[row.memory], row.words  # type: ignore[attr-defined]
    rank = int(words) if words < float("inf") else None
    return Candidate(memory.key, memory.text, memory.at, row.cosine_value, rank)  # type: ignore[attr-defined]


def say(shown: Shown) -> str:
    """The panel's sentence."""
    all_ = shown.all_questions
    precision = "nothing goes in" if all_["precision"] != all_["precision"] else f"precision {all_['precision']:.0f} %"
    return (
        f"{shown.asked.question} ({WHAT[shown.asked.kind]}) {len(shown.let_in)} memories go in. All {shown.language} "
        f"questions: {precision}, recall {all_['recall']:.0f} %; something goes in for {all_[NEAR]:.0f} % of the near "
        f"misses and {all_[FAR]:.0f} % of another topic."
    )


def draw(shown: Shown) -> Figure:
    """Left the candidates with their reasons, right all questions."""
    figure, (left, right) = row_of_axes(2, 12.6, 4.6)
    _draw_candidates(left, shown)
    draw_rates(right, shown.language, shown.embedder, bands=False)
    right.axvline(shown.threshold, color=GREY, linewidth=2)
    for name, value in shown.all_questions.items():
        right.plot(shown.threshold, value, "o", color=LOOKS[name][0], markersize=9)
    right.set_title(f"All {shown.language} questions")
    figure.legend(*right.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def _draw_candidates(ax: Axes, shown: Shown) -> None:
    for row, (hit, gold) in enumerate(shown.hits):
        candidate = hit.candidate
        ax.barh(row, candidate.cosine, color=GREEN if gold else BLUE, alpha=1 if row in shown.let_in else 0.3)
        more = hit.verdict == "in" and row not in shown.let_in
        reason = f"in, but {K} are enough" if more else hit.reason.split(" of ")[0]
        ax.text(0.73, row, reason + (", answers" if gold else ""), va="center", fontsize=11)
    ax.axvline(shown.threshold, color=ORANGE, linewidth=2)
    ax.set_xticks(np.arange(0, 0.8, 0.2))
    ax.set_yticks(range(len(shown.hits)), [_label(hit.candidate) for hit, _ in shown.hits])
    ax.set(title="Candidates in fused order", xlabel="cosine", xlim=(-0.1, 1.45), ylim=(len(shown.hits) - 0.4, -0.6))
    ax.grid(False)


def _label(candidate: Candidate) -> str:
    rank = "no word" if candidate.lexical_rank is None else f"words: {candidate.lexical_rank}"
    return f"{candidate.created_at:%d %b}, {rank}"


def gate_panel() -> Panel:
    """The panel itself."""
    return panel(
        gate,
        draw,
        say,
        [
            Choice("question", list(picked()), label="question"),
            Choice("embedder", sorted(embedders("English"), key=lambda name: name != USE), label="embedder"),
            Slider("threshold", 0, 0.7, 0.2, 0.02, label="threshold", unit="cosine"),
        ],
        title="What the gate lets in",
    )

"""The panel of chapter 15: every method at one k, its recall beside what it lets in for nothing and what it costs."""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tri_memory.lab.chapters.ch15 import ranked
from tri_memory.lab.datasets import KINDS
from tri_memory.lab.evaluation import GATED
from tri_memory.lab.metrics import Interval
from tri_memory.lab.panel import Choice, Panel, Slider, panel
from tri_memory.lab.plots import BLUE, GREY, ORANGE, row_of_axes
from tri_memory.lab.rankers import CONVERSATION
from tri_memory.lab.report import ADMITTED, UNANSWERABLE

ALL = "all kinds"
LANGUAGES = {"English": "en", "Chinese": "zh"}
MOST = 20  # memories in the prompt


@dataclass(frozen=True)
class Row:
    """One method: its recall, how often each kind of question without an answer gets memories, and mean tokens."""

    method: str
    recall: Interval
    admitted: dict[str, Interval]
    tokens: float


@dataclass(frozen=True)
class Compared:
    language: str
    kind: str
    k: int
    rows: tuple[Row, ...]

    def of(self, method: str) -> Row:
        return next(row for row in self.rows if row.method == method)


def compare(language: str, kind: str, k: int) -> Compared:
    """The panel's model. `kind` narrows recall alone: questions without an answer are of no such kind."""
    report = ranked.report(LANGUAGES[language], k)
    tokens = report.rows.groupby("method")["tokens"].mean()
    rows = [
        Row(
            method,
            report.of(method, f"any@{k}", None if kind == ALL else kind),
            {measure: report.of(method, measure) for measure in ADMITTED.values()},
            float(tokens[method]),
        )
        for method in report.methods
    ]
    return Compared(language, kind, k, tuple(rows))


def say(found: Compared) -> str:
    """The panel's sentence."""
    plain, behind = found.of(CONVERSATION), found.of(GATED)
    return (
        f"{found.language}, {found.kind}, k = {found.k}: {CONVERSATION} answers {plain.recall.mean:.0%} of "
        f"{plain.recall.n} questions for {plain.tokens:,.0f} tokens; behind the gate {behind.recall.mean:.0%}, and "
        f"{behind.admitted[UNANSWERABLE].mean:.0%} of unanswerable questions still get memories."
    )


def draw(found: Compared) -> Figure:
    """A row a method; recall, admissions and tokens side by side."""
    figure, (recall, admitted, tokens) = row_of_axes(3, 12.4, 4.6)
    for y, row in enumerate(reversed(found.rows)):
        _dot(recall, y, row.recall, BLUE, "o", None)
        for (kind, value), colour, marker, above in zip(
            row.admitted.items(), (ORANGE, GREY), ("D", "s"), (0.13, -0.13), strict=True
        ):
            _dot(admitted, y + above, value, colour, marker, kind.removesuffix(" admitted"))
        tokens.barh(y, row.tokens, color=BLUE, height=0.6)
        tokens.annotate(f"{row.tokens:,.0f}", (row.tokens, y), (4, 0), textcoords="offset points", va="center")
    names = [row.method for row in reversed(found.rows)]
    recall.set(title="Answered (more is better)", xlabel=f"any@{found.k} (%)", xlim=(-4, 104))
    admitted.set(title="Let in for nothing", xlabel="questions (%)", xlim=(-4, 104))
    tokens.set(title="Price", xlabel="tokens a question", xlim=(0, 1.25 * max(row.tokens for row in found.rows)))
    for ax in (recall, admitted, tokens):
        ax.set_yticks(range(len(names)), names if ax is recall else [""] * len(names))
        ax.set_ylim(-0.5, len(names) - 0.5)
        ax.grid(True, axis="x")
    handles, labels = admitted.get_legend_handles_labels()
    figure.legend(handles[:2], labels[:2], loc="outside lower center", ncols=2)
    return figure


def _dot(ax: Axes, y: float, value: Interval, colour: str, marker: str, label: str | None) -> None:
    ax.plot([100 * value.low, 100 * value.high], [y, y], color=colour)
    ax.plot(100 * value.mean, y, marker, color=colour, markersize=9, label=label, ls="none")


def report_panel() -> Panel:
    """The panel itself."""
    kinds = [ALL, *(kind for kind in KINDS if kind != "unanswerable")]
    return panel(
        compare,
        draw,
        say,
        [
            Choice("language", list(LANGUAGES)),
            Choice("kind", kinds, label="kind of question"),
            Slider("k", 1, MOST, 5, label="k, memories"),
        ],
        title="Recall, and what it costs",
    )

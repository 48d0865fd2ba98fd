"""The panel of chapter 12: one reader, one writer, and what the cache says while and after they meet, second by second.

In simulated time. The tests play the same steps in the same order on real servers.
"""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tri_memory.lab.chapters.ch12.ways import DELETE_AFTER, DELETE_FIRST, KIT, SET_AFTER, SET_FIRST
from tri_memory.lab.panel import Choice, Panel, Slider, panel
from tri_memory.lab.plots import BLUE, GREY, ORANGE, axes

ORDERS = (DELETE_AFTER, SET_AFTER, DELETE_FIRST, SET_FIRST, KIT)
WRITES_S = (2.0, 3.0)  # the writer's two steps; with the second the write returns
ASKS_S = 0.2  # from the reader's look into the cache to its look into Postgres

Span = tuple[float, float, str]  # from, to, "old" or "new"


@dataclass(frozen=True)
class Step:
    """At `at` seconds, `who` (reader or writer) does `what`."""

    at: float
    who: str
    what: str


@dataclass(frozen=True)
class Course:
    """What happened. `cached` and `truth` are spans of seconds; `stale` those in which the cache has the old number
    after the write returned."""

    order: str
    steps: tuple[Step, ...]
    cached: tuple[Span, ...]
    truth: tuple[Span, ...]
    stale: tuple[Span, ...]
    end: float

    @property
    def stale_s(self) -> float:
        return sum(to - since for since, to, _ in self.stale)


def course(order: str, begins_s: float, held_s: float, ttl_s: float) -> Course:
    """The panel's model: a reader looks into the empty cache at `begins_s`, and is held up for `held_s` between its
    answer from Postgres and its fill. All times in seconds."""
    first, returns = WRITES_S
    writes_at = returns if order in (SET_FIRST, DELETE_FIRST) else (first + returns) / 2 if order == KIT else first
    looks, asks = round(begins_s, 6), round(begins_s + ASKS_S, 6)
    fills = round(asks + held_s, 6)
    cache: list[tuple[float, str]] = []  # what stands there from then on, "" for nothing
    missed = not (order == SET_FIRST and looks >= first) and not (order == SET_AFTER and looks >= returns)
    read = "new" if asks >= writes_at else "old"
    steps = [Step(looks, "reader", "Redis: nothing there" if missed else "Redis: the new number")]
    if missed:
        allowed = order != KIT or looks >= returns or fills < first
        steps += [
            Step(asks, "reader", f"Postgres: the {read} number"),
            Step(fills, "reader", f"fills: the {read} number" if allowed else "may not fill"),
        ]
        cache += [(fills, read)] * allowed
    steps += _writer(order, writes_at)
    cache += [(first, "new")] * (order == SET_FIRST) + [(first, "")] * (order in (DELETE_FIRST, KIT))
    cache += [(returns, "new")] * (order == SET_AFTER) + [(returns, "")] * (order in (DELETE_AFTER, KIT))
    cached = _spans(sorted(cache, key=lambda one: one[0]), ttl_s)
    end = max(30.0, fills + ttl_s + 2)
    stale = tuple((max(since, returns), to, what) for since, to, what in cached if what == "old" and to > returns)
    steps = sorted(steps, key=lambda step: (step.at, step.who))
    return Course(order, tuple(steps), cached, ((0, writes_at, "old"), (writes_at, end, "new")), stale, end)


def _writer(order: str, writes_at: float) -> list[Step]:
    first, returns = WRITES_S
    redis = {
        SET_FIRST: [Step(first, "writer", "Redis: sets the new number")],
        DELETE_FIRST: [Step(first, "writer", "Redis: deletes")],
        SET_AFTER: [Step(returns, "writer", "Redis: sets the new number")],
        DELETE_AFTER: [Step(returns, "writer", "Redis: deletes")],
        KIT: [Step(first, "writer", "Redis: marks"), Step(returns, "writer", "Redis: unmarks")],
    }[order]
    return [*redis, Step(writes_at, "writer", "Postgres: the new number")]


def _spans(changes: list[tuple[float, str]], ttl_s: float) -> tuple[Span, ...]:
    found = []
    for i, (since, what) in enumerate(changes):
        to = min([since + ttl_s, *(at for at, _ in changes[i + 1 :])])
        if what and to > since:
            found.append((since, to, what))
    return tuple(found)


def say(found: Course) -> str:
    """The panel's sentence."""
    fill = next((step for step in found.steps if "fill" in step.what), None)
    reader = f"The reader {fill.what} at {fill.at:.1f} s. " if fill else "The reader finds the new number in Redis. "
    if not found.stale:
        return f"{reader}After the write has returned, the old number is served for 0 s."
    since, to, _ = found.stale[0]
    return (
        f"{reader}After the write has returned, the old number is served for {found.stale_s:.1f} s, "
        f"from {since:.1f} s to {to:.1f} s."
    )


def draw(found: Course) -> Figure:
    """Four lanes: what the writer and the reader do, what Postgres has, what Redis has."""
    figure, ax = axes(11.0, 4.6, title=found.order, xlabel="time (s), slowed down")
    ax.axvspan(WRITES_S[1], found.end, color="#F3F3F3", zorder=0)
    ax.text(WRITES_S[1] + 0.15, 3.62, "the write has returned", color=GREY, fontsize=11)
    for y, who in ((3, "writer"), (2, "reader")):
        its = [step for step in found.steps if step.who == who]
        ax.plot([step.at for step in its], [y] * len(its), "-o", color=GREY, markersize=8, linewidth=1.4)
        last = its[-1]
        ax.annotate(
            "; ".join(step.what for step in its),
            (last.at, y),
            xytext=(10, 0),
            textcoords="offset points",
            va="center",
            fontsize=11,
        )
    _lane(ax, 1, found.truth)
    _lane(ax, 0, found.cached)
    ax.set_yticks([3, 2, 1, 0], ["writer", "reader", "Postgres has", "Redis has"])
    ax.set(xlim=(0, found.end), ylim=(-0.6, 4.0))
    ax.grid(False)
    return figure


def _lane(ax: Axes, y: float, spans: tuple[Span, ...]) -> None:
    for since, to, what in spans:
        colour, hatch = (ORANGE, "//") if what == "old" else (BLUE, "")
        ax.barh(y, to - since, left=since, height=0.5, color=colour, hatch=hatch, edgecolor="white")
        ax.text(
            (since + to) / 2,
            y,
            what,
            ha="center",
            va="center",
            fontweight="bold",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5},
        )


def timeline_panel() -> Panel:
    """The panel itself."""
    return panel(
        course,
        draw,
        say,
        [
            Choice("order", ORDERS, label="how a write is done"),
            Slider("begins_s", 0, 4, 1.2, 0.1, label="the reader begins at", unit="s"),
            Slider("held_s", 0, 6, 2, 0.5, label="its fill is held up for", unit="s"),
            Slider("ttl_s", 5, 60, 20, 1, label="TTL of an entry", unit="s"),
        ],
        title="An old number in the cache",
    )

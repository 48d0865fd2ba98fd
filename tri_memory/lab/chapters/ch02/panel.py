"""The panel of chapter 02: sixty turns, one slow summary, three designs, counted in simulated time."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from matplotlib.figure import Figure

from tri_memory.lab.chapters.ch02.writers import COLOURS, WRITERS
from tri_memory.lab.panel import Panel, Slider, panel
from tri_memory.lab.plots import GREY, axes

TURNS = 60
AFTER, KEEP = 40, 20


@dataclass(frozen=True)
class Timeline:
    """One design under load. Times in seconds since the first turn; `stored[i]` is None where turn i is gone."""

    writer: str
    sent: tuple[float, ...]
    stored: tuple[float | None, ...]
    summaries: tuple[tuple[float, float], ...]

    @property
    def lost(self) -> int:
        return self.stored.count(None)

    @property
    def longest_wait(self) -> float:
        """The longest time between sending a turn and having it stored."""
        return max(
            (after - at for at, after in zip(self.sent, self.stored, strict=True) if after is not None), default=0
        )


def race(summary_s: float, gap_s: float) -> list[Timeline]:
    """The panel's model: the three designs, each with 60 turns, one every `gap_s` seconds."""
    sent = tuple(i * gap_s for i in range(TURNS))
    return [_racing(sent, summary_s), _serial(sent, summary_s), _plan_commit(sent, summary_s)]


def _racing(sent: tuple[float, ...], summary_s: float) -> Timeline:
    """Whoever reads 40 turns folds them and writes back; the last one to write back wins."""
    history: tuple[int, ...] = ()
    covered: frozenset[int] = frozenset()
    stored: dict[int, float] = {}
    summaries = []
    writes: list[tuple[float, int, tuple[int, ...], frozenset[int]]] = []
    folded = False
    for turn, now in [*enumerate(sent), (TURNS, float("inf"))]:
        while writes and writes[0][0] <= now:
            at, who, history, covered = heapq.heappop(writes)
            stored[who], folded = at, True
        if turn == TURNS:
            break
        mine = (*history, turn)
        if len(mine) + folded > AFTER:
            summaries.append((now, now + summary_s))
            heapq.heappush(writes, (now + summary_s, turn, mine[-KEEP:], covered | set(mine[:-KEEP])))
        else:
            history, stored[turn] = mine, now
    held = covered | set(history)
    moments = tuple(stored[turn] if turn in held else None for turn in range(TURNS))
    return Timeline("racing", sent, moments, tuple(summaries))


def _serial(sent: tuple[float, ...], summary_s: float) -> Timeline:
    """One at a time: a turn is stored when all before it are, and turn 41 takes a summary longer."""
    free_at, length = 0.0, 0
    stored, summaries = [], []
    for now in sent:
        begin = max(now, free_at)
        length += 1
        free_at = begin
        if length > AFTER:
            free_at, length = begin + summary_s, KEEP + 1
            summaries.append((begin, free_at))
        stored.append(free_at)
    return Timeline("serial", sent, tuple(stored), tuple(summaries))


def _plan_commit(sent: tuple[float, ...], summary_s: float) -> Timeline:
    """Stored when sent; the summary replaces the planned head whenever it is ready."""
    length, ready = 0, None
    summaries = []
    for now in sent:
        if ready is not None and ready <= now:
            length, ready = length - (AFTER - KEEP), None
        length += 1
        if length > AFTER and ready is None:
            ready = now + summary_s
            summaries.append((now, ready))
    return Timeline("plan-commit", sent, sent, tuple(summaries))


def say(lines: list[Timeline]) -> str:
    """The panel's sentence."""
    racing, serial, commit = lines
    return (
        f"Racing loses {racing.lost} of {TURNS} turns and pays for {len(racing.summaries)} summaries. "
        f"Serial loses {serial.lost}, but one turn waits {serial.longest_wait:.1f} s. "
        f"Plan-commit loses {commit.lost} and stores each turn at once."
    )


def draw(lines: list[Timeline]) -> Figure:
    """When each turn was stored, a row a design; crosses are turns that are gone in the end."""
    figure, ax = axes(
        9.2, 3.4, title="When each turn is stored (cross: gone in the end)", xlabel="time since the first turn (s)"
    )
    begin, end = lines[-1].summaries[0]
    ax.axvspan(begin, max(end, begin + 0.05), color="#ECECEC", zorder=0)
    ax.text(
        (begin + end) / 2, 2.62, "plan-commit's summary\nbeing written", va="top", ha="center", fontsize=10, color=GREY
    )
    for row, line in enumerate(reversed(lines)):
        colour = COLOURS[line.writer]
        kept = [moment for moment in line.stored if moment is not None]
        gone = [at for at, moment in zip(line.sent, line.stored, strict=True) if moment is None]
        ax.plot(kept, [row] * len(kept), "o", color=colour, alpha=0.6, markersize=5)
        ax.plot(gone, [row] * len(gone), "x", color=colour, markersize=8, markeredgewidth=2)
    ax.set_yticks(range(len(lines)), list(reversed(WRITERS)))
    ax.set_ylim(-0.5, 2.75)
    ax.grid(False)
    return figure


def race_panel() -> Panel:
    """The panel itself."""
    return panel(
        race,
        draw,
        say,
        [
            Slider("summary_s", 0, 9.5, 6, 0.5, label="a summary takes", unit="s"),
            Slider("gap_s", 0.1, 3, 1, 0.1, label="a turn comes every", unit="s"),
        ],
        title="Three writers, one slow summary",
    )

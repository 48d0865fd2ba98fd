"""Who wins where in a sweep: where a lead ends, lines with their spread, a map over two parameters."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import pandas as pd
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from tri_memory.lab.plots import COLOURS, axes

FEWEST_SEEDS = 5  # with four, one lead in eight would look clear by chance alone
_DRAWS = 2_000


def leads(frame: pd.DataFrame, x: str, y: str, by: str, *, lower_is_better: bool = False) -> pd.DataFrame:
    """One row a value of `x`: leader and rival (the two best means over the seeds), lead (leader minus rival, the mean
    over seeds that both have), low and high (its 95 % interval, the seeds resampled), winner (the leader if its
    interval against every other leaves zero out, else None).

    With fewer than five seeds in common nobody wins. ValueError where one x, `by` and seed have several rows.
    """
    groups = list(dict.fromkeys(frame[by]))
    rows = []
    for value, its in _table(frame, x, y, by).groupby(level=0, sort=True):
        wide = its.droplevel(0).reindex(columns=groups) * (-1 if lower_is_better else 1)
        ranked = wide.mean().dropna().sort_values(ascending=False, kind="stable").index
        if len(ranked) == 0:
            continue
        against = {rival: _interval((wide[ranked[0]] - wide[rival]).dropna().to_numpy()) for rival in ranked[1:]}
        wins = bool(against) and all(low > 0 for _, low, _ in against.values())
        rival = ranked[1] if against else None
        lead, low, high = against.get(rival, (np.nan,) * 3)
        rows.append((value, ranked[0], rival, lead, low, high, ranked[0] if wins else None))
    table = pd.DataFrame(rows, columns=[x, "leader", "rival", "lead", "low", "high", "winner"])
    return table.assign(winner=pd.Series([row[-1] for row in rows], dtype=object))


def crossings(frame: pd.DataFrame, x: str, y: str, by: str, *, lower_is_better: bool = False) -> pd.DataFrame:
    """Where along `x` the winner changes: one row a change, with `after` (the last x before it), `x` itself, `before`
    and `now` (the winners, None where no lead is clear), and leader, rival, lead, low, high at x as `leads` has them.

    A change of leaders neither of whom leads clearly is noise and no row.
    """
    table = leads(frame, x, y, by, lower_is_better=lower_is_better)
    changes = [
        {"after": old[x], x: new[x], "before": old["winner"], "now": new["winner"], **new[["leader", "rival"]]}
        | dict(new[["lead", "low", "high"]])
        for (_, old), (_, new) in zip(table.iloc[:-1].iterrows(), table.iloc[1:].iterrows(), strict=True)
        if old["winner"] != new["winner"]
    ]
    columns = ["after", x, "before", "now", "leader", "rival", "lead", "low", "high"]
    found = pd.DataFrame(changes, columns=columns)
    return found.assign(**{name: pd.Series([row[name] for row in changes], dtype=object) for name in ("before", "now")})


def plot_sweep(
    frame: pd.DataFrame,
    x: str,
    y: str,
    by: str,
    *,
    xlabel: str,
    ylabel: str,
    title: str = "",
    log_x: bool = False,
    lower_is_better: bool = False,
) -> Figure:
    """A line a group: the mean over seeds, a band of one standard deviation to both sides, every seed as a faint point.

    Dotted lines mark where a winner stops winning. A line has a gap where all its cells failed; a note counts them.
    `xlabel` and `ylabel` name the units.
    """
    figure, ax = axes(8.6, 4.4, title=title, xlabel=xlabel, ylabel=ylabel)
    if log_x:
        ax.set_xscale("log")
        measured = sorted(frame[x].unique())
        ax.set_xticks(measured, [f"{value:g}" for value in measured])
        ax.minorticks_off()
    ends: list[tuple[float, float, str, str]] = []
    for number, (name, its) in enumerate(frame.groupby(by, sort=False)):
        colour, spoken = COLOURS[number % len(COLOURS)], its.groupby(x)[y]
        mean, spread = spoken.mean(), spoken.std(ddof=1).fillna(0)
        ax.plot(its[x], its[y], "o", color=colour, alpha=0.22, markersize=4, markeredgewidth=0)
        ax.fill_between(mean.index, mean - spread, mean + spread, color=colour, alpha=0.14, linewidth=0)
        ax.plot(mean.index, mean, color=colour, marker="o", markersize=4)
        if (seen := mean.dropna()).size:
            ends.append((float(seen.index[-1]), float(seen.iloc[-1]), str(name), colour))
    _name_lines(ax, ends)
    _mark_crossings(ax, crossings(frame, x, y, by, lower_is_better=lower_is_better), x)
    _count_failed(figure, frame)
    return figure


def plot_map(frame: pd.DataFrame, x: str, y: str, value: str, *, xlabel: str, ylabel: str, unit: str) -> Figure:
    """The mean of `value` for every pair of x and y, as colour and as a number; "failed" where no cell has one."""
    mean = frame.pivot_table(index=y, columns=x, values=value, aggfunc="mean", dropna=False)
    figure, ax = axes(1.6 + 1.05 * mean.shape[1], 1.6 + 0.55 * mean.shape[0], xlabel=xlabel, ylabel=ylabel)
    ax.grid(False)
    image = ax.imshow(mean, origin="lower", aspect="auto", cmap="cividis")
    ax.set_xticks(range(mean.shape[1]), [f"{name}" for name in mean.columns])
    ax.set_yticks(range(mean.shape[0]), [f"{name}" for name in mean.index])
    for (row, column), number in np.ndenumerate(mean.to_numpy(float)):
        failed = np.isnan(number)
        pale = float(np.ma.getdata(image.norm(number))) > 0.5
        ink = rcParams["text.color"] if failed else "black" if pale else "white"
        ax.text(column, row, "failed" if failed else f"{number:.3g}", ha="center", va="center", color=ink)
    figure.colorbar(image, label=unit)
    _count_failed(figure, frame)
    return figure


def _table(frame: pd.DataFrame, x: str, y: str, by: str) -> pd.DataFrame:
    """Rows (x, seed), a column a group. Failed cells are nan."""
    double = frame[frame.duplicated([x, by, "seed"])]
    if len(double):
        first = double.iloc[0]
        raise ValueError(
            f"{x}={first[x]}, {by}={first[by]}, seed={first['seed']} has several rows: choose one value of the other "
            "parameters first"
        )
    return frame.pivot(index=[x, "seed"], columns=by, values=y).astype(float)


def _interval(gains: NDArray[np.float64]) -> tuple[float, float, float]:
    """(mean, low, high); without bounds where there are too few seeds to say."""
    if len(gains) < FEWEST_SEEDS:
        return (float(gains.mean()) if len(gains) else np.nan, -np.inf, np.inf)
    drawn = gains[np.random.default_rng(0).integers(len(gains), size=(_DRAWS, len(gains)))].mean(axis=1)
    low, high = np.percentile(drawn, [2.5, 97.5])
    return float(gains.mean()), float(low), float(high)


def _name_lines(ax: Axes, ends: list[tuple[float, float, str, str]]) -> None:
    """Names at the ends of the lines, pushed apart where the lines end close together, none above the plot."""
    bottom, top = ax.get_ylim()
    step = 0.075 * (top - bottom)
    ends = sorted(ends, key=lambda end: end[1])
    places: list[float] = []
    for _, y, _, _ in ends:
        places.append(max(y, places[-1] + step) if places else y)
    most = top
    for number in reversed(range(len(places))):
        places[number] = min(places[number], most)
        most = places[number] - step
    for (x, _, name, colour), at in zip(ends, places, strict=True):
        ax.annotate(name, (x, at), xytext=(8, 0), textcoords="offset points", va="center", color=colour, weight="bold")


def _mark_crossings(ax: Axes, found: pd.DataFrame, x: str) -> None:
    stops = [(row[x], row["before"]) for _, row in found.iterrows() if row["before"] is not None]
    for number, (at, name) in enumerate(stops):
        _mark(ax, at, name, 0.98 - 0.08 * (number % 3))


def _mark(ax: Axes, at: float, name: Hashable, height: float) -> None:
    ink = rcParams["text.color"]
    ax.axvline(at, color=ink, linewidth=1.2, linestyle=":", zorder=1)
    across = ax.transAxes.inverted().transform(ax.transData.transform((at, ax.get_ylim()[0])))[0]
    late = across > 0.6
    ax.annotate(
        f"{name} stops winning here",
        (at, height),
        xycoords=("data", "axes fraction"),
        xytext=(-5 if late else 5, 0),
        textcoords="offset points",
        ha="right" if late else "left",
        va="top",
        fontsize=10.5,
        color=ink,
    )


def _count_failed(figure: Figure, frame: pd.DataFrame) -> None:
    failed = int(frame["error"].notna().sum()) if "error" in frame else 0
    if failed:
        figure.supxlabel(f"{failed:,} of {len(frame):,} cells failed and are left out", fontsize=10, x=0.99, ha="right")

"""The pictures of the experiments."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from tri_memory.agent.feedback_simulation import Runs
from tri_memory.lab.chapters.ch14.injecting import CLAIMED_MS
from tri_memory.lab.chapters.ch14.measure import with_intervals
from tri_memory.lab.plots import BLUE, GREEN, GREY, ORANGE, PURPLE, label_line, row_of_axes

MEASURES = {"in": ("in the prompt", BLUE, "o", "-"), "right": ("said by the model", ORANGE, "D", "--")}
BLACK = "#222222"
RUNS = ((BLUE, "-"), (PURPLE, "--"), (GREEN, "-."), (BLACK, ":"), (ORANGE, "-"))


def against_budget(table: pd.DataFrame) -> Figure:
    """English and Chinese side by side, bands over the people."""
    figure, both = row_of_axes(2, 11.4, 4.3)
    budgets = sorted(set(table.budget))
    for ax, (language, part) in zip(both, table.groupby("language", sort=False), strict=True):
        for measure, (label, colour, marker, line) in MEASURES.items():
            its = with_intervals(part, measure)
            ax.plot(its.budget, its.share, line, color=colour, marker=marker, label=f"answer {label}")
            ax.fill_between(its.budget, its.low, its.high, color=colour, alpha=0.13)
        ax.set(title=str(language), xlabel="budget (tokens)", ylabel="questions (%)", ylim=(0, 104), xscale="log")
        ax.set_xticks(budgets, [f"{budget:,}" for budget in budgets])
        ax.minorticks_off()
    figure.legend(*both[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def by_share(table: pd.DataFrame) -> Figure:
    """A grid with its numbers: a row a way to share, a column for where the answer is to be found."""
    figure, (ax,) = row_of_axes(1, 10.4, 3.9)
    ax.imshow(table.to_numpy(), cmap="Blues", vmin=0, vmax=130, aspect="auto")
    for (row, column), value in np.ndenumerate(table.to_numpy()):
        best = value >= table.iloc[:, column].max() - 1e-9
        weight, colour = "bold" if best else "normal", "white" if value > 75 else "black"
        ax.text(column, row, f"{value:.0f}", ha="center", va="center", fontweight=weight, color=colour)
    ax.set_xticks(range(table.shape[1]), list(table.columns))
    ax.set_yticks(range(table.shape[0]), list(table.index))
    ax.set(title="Answer in the prompt (%), by where it is to be found", ylabel="shares")
    ax.tick_params(length=0)
    ax.grid(False)
    ax.axvline(table.shape[1] - 1.5, color="white", linewidth=6)
    return figure


def learning(runs: Mapping[str, Runs], over: int = 20) -> Figure:
    """Relevance turn by turn, the mean of all users with its 95 % interval, smoothed over some turns, and the same
    without learning."""
    figure, (ax,) = row_of_axes(1, 10.4, 4.6)
    kernel = np.ones(over) / over
    turns = next(iter(runs.values())).learned.shape[1]
    above = 103.0
    for (name, run), (colour, line) in zip(runs.items(), RUNS, strict=True):
        its = 100 * np.array([np.convolve(user, kernel, "valid") for user in run.learned])
        mean, error = its.mean(axis=0), 1.96 * its.std(axis=0, ddof=1) / np.sqrt(len(its))
        ax.plot(np.arange(over, turns + 1), mean, line, color=colour)
        ax.fill_between(np.arange(over, turns + 1), mean - error, mean + error, color=colour, alpha=0.13)
        above = min(float(mean[-1]), above - 6)  # so that no name covers another
        label_line(ax, turns, above, name, colour)
    plain = 100 * float(np.mean([run.unlearned.mean() for run in runs.values()]))
    ax.plot([0, turns], [plain, plain], color=GREY, linewidth=1.6)
    label_line(ax, turns, plain, "no learning", GREY)
    ax.set(xlabel="turn of a user", ylabel="relevant memories (%)", ylim=(0, 103), xlim=(0, 1.34 * turns))
    ax.set_xticks(range(0, turns + 1, 50))
    return figure


def injection(table: pd.DataFrame) -> Figure:
    """P50 (open), P95 (filled, with its interval) and the first question (triangle) against the number of memories, a
    plot an engine, and the line of the claim."""
    engines = list(dict.fromkeys(table.engine))
    figure, plots = row_of_axes(len(engines), 11.4, 4.3)
    for ax, engine in zip(plots, engines, strict=True):
        for (how, its), (colour, marker) in zip(
            table[table.engine == engine].groupby("how", sort=False), ((BLUE, "o"), (ORANGE, "D")), strict=True
        ):
            if "words" in how:  # by meaning alone nothing is counted first
                ax.plot(its.memories, its["first"], "--", color=colour, marker="^", label=f"{how}, first question")
            ax.plot(its.memories, its.p95, "-", color=colour, marker=marker, label=f"{how}, P95")
            ax.vlines(its.memories, its.low, its.high, color=colour, linewidth=2)
            ax.plot(its.memories, its.p50, ":", color=colour, marker=marker, fillstyle="none", label=f"{how}, P50")
        ax.axhline(CLAIMED_MS, color=GREY, linewidth=1.6, label=f"the claim's {CLAIMED_MS:.0f} ms")
        ax.set(title=engine, xlabel="memories of the user", ylabel="ms", xscale="log", yscale="log")
        sizes = sorted(set(table.memories))
        ax.set_xticks(sizes, [f"{size:,}" for size in sizes])
        ax.set_yticks([3, 10, 30, 100, 300, 1_000], ["3", "10", "30", "100", "300", "1,000"])
        ax.minorticks_off()
    figure.legend(*plots[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure

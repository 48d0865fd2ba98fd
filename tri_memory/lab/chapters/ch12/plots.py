"""The pictures of chapter 12: what reading costs, how often it hits, and what large values cost."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from tri_memory.lab.chapters.ch12.hits import TTLS_S
from tri_memory.lab.chapters.ch12.large import SPLIT, WHOLE
from tri_memory.lab.chapters.ch12.speed import DEAD, DUE, GET, HIT, MISS, POSTGRES, break_even, medians
from tri_memory.lab.plots import BLUE, GREEN, GREY, ORANGE, PURPLE, row_of_axes

LOOKS = {
    GET: (GREY, "v"),
    HIT: (BLUE, "o"),
    DUE: ("#222222", "P"),
    POSTGRES: (GREEN, "s"),
    MISS: (ORANGE, "D"),
    DEAD: (PURPLE, "^"),
}
READS = {"at every turn": (BLUE, "o"), "three times a visit": (GREEN, "s"), "once a visit": (ORANGE, "D")}


def cost(table: pd.DataFrame) -> Figure:
    """Left: each way by the number of records, rounds as small marks. Right: the mean of a read by the hit rate."""
    figure, (left, right) = row_of_axes(2, 13.0, 5.0)
    sizes = sorted(set(table.records))
    for i, (way, (colour, marker)) in enumerate(LOOKS.items()):
        own = table[table.way == way]
        places = own.records.map(sizes.index) + (i - 2.5) * 0.14
        left.plot(places, own.ms, marker, color=colour, alpha=0.4, markersize=5)
        its = own.groupby("records").ms.median()
        left.plot([sizes.index(size) + (i - 2.5) * 0.14 for size in its.index], its, marker, color=colour, label=way)
    left.set(title="One read", xlabel="records of this user", ylabel="ms", yscale="log")
    left.yaxis.set_major_formatter(FuncFormatter(lambda ms, _: f"{ms:g}"))
    left.set_xticks(range(len(sizes)), [str(size) for size in sizes])
    for place in range(1, len(sizes)):
        left.axvline(place - 0.5, color="#DDDDDD", linewidth=1)
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=len(LOOKS))
    for size, line in zip(sizes, ("-", "--", ":"), strict=False):
        ms = medians(table, size)
        right.plot([0, 100], [1, 1], color=GREEN, linewidth=1.6)
        relative = [ms[MISS] / ms[POSTGRES], ms[HIT] / ms[POSTGRES]]
        right.plot([0, 100], relative, line, color=BLUE, label=f"cache, {size} record{'s' * (size > 1)}")
        if (share := break_even(ms)) <= 1:
            right.plot([100 * share], [1], "o", color=BLUE, markersize=9, markeredgecolor="white")
    right.set(title="A read on average", xlabel="reads that hit (%)", ylabel="times Postgres alone", ylim=(0, None))
    right.text(1, 0.93, "Postgres alone", color=GREEN, va="top", fontweight="bold")
    right.legend(loc="upper right", fontsize=11)
    return figure


def hit_rates(table: pd.DataFrame) -> Figure:
    """With writes and without: per cent of the reads that hit, by TTL; marks are seeds and languages."""
    figure, both = row_of_axes(2, 13.0, 4.2)
    names = list(TTLS_S)
    for ax, (writes, title) in zip(both, ((True, "Writes end entries"), (False, "If nobody wrote")), strict=True):
        for reads, (colour, marker) in READS.items():
            own = table[(table.reads == reads) & (table.writes == writes)]
            places = own.ttl_s.map(list(TTLS_S.values()).index)
            ax.plot(places, own.percent, marker, color=colour, alpha=0.35, markersize=5)
            mean = own.groupby("ttl_s").percent.mean()
            ax.plot(range(len(mean)), mean, "-", color=colour)
            ax.plot([], [], f"{marker}-", color=colour, label=f"read {reads}")
        ax.set(title=title, xlabel="TTL of an entry", ylabel="reads that hit (%)", ylim=(-3, 100))
        ax.set_xticks(range(len(names)), names)
    figure.legend(*both[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def large(jsonb: pd.DataFrame, redis: pd.DataFrame) -> Figure:
    """Milliseconds and log of a changed field, milliseconds of a value in Redis, by size; bars from least to most."""
    figure, (one, two, three) = row_of_axes(3, 14.0, 4.2)
    looks = {WHOLE: (ORANGE, "D"), SPLIT: (GREEN, "s")}
    for way, (colour, marker) in looks.items():
        own = jsonb[jsonb.way == way]
        _spread(one, own, colour, marker, way)
        two.plot(own["size"], own.wal, f"{marker}-", color=colour, label=way)
    one.set(title="Change one field", ylabel="ms")
    two.set(title="Postgres' write-ahead log", ylabel="bytes")
    for what, (colour, marker) in {"SET": (PURPLE, "^"), "GET": (BLUE, "o")}.items():
        _spread(three, redis[redis.what == what], colour, marker, what)
    three.set(title="A value in Redis", ylabel="ms")
    for ax, sizes in ((one, jsonb["size"]), (two, jsonb["size"]), (three, redis["size"])):
        ax.set(xscale="log", yscale="log", xlabel="size")
        few = [size for size in sorted(set(sizes)) if size != 1_000_000 or ax is three]  # 2 MB stands next to it
        ax.set_xticks(few, [_bytes(size) for size in few])
        ax.minorticks_off()
    three.legend(loc="upper left")
    figure.legend(*one.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def _bytes(size: int) -> str:
    return f"{size / 1e6:g} MB" if size >= 1e6 else f"{size / 1e3:g} kB"


def _spread(ax: Axes, its: pd.DataFrame, colour: str, marker: str, label: str) -> None:
    errors = [its.ms - its.least, its.most - its.ms]
    ax.errorbar(its["size"], its.ms, yerr=errors, fmt=f"{marker}-", color=colour, capsize=4, label=label)

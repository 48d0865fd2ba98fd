"""Crossings on made-up sweeps whose truth is known, and what the pictures show of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tri_memory.lab.plots import png
from tri_memory.lab.sweep_plots import crossings, leads, plot_map, plot_sweep


def made(groups, xs=range(1, 6), seeds=8, shared=0.5, own=0.01):
    """y = f(x) + what the seed does to all groups + a little of its own."""
    rng = np.random.default_rng(3)
    luck = rng.standard_normal(seeds) * shared
    return pd.DataFrame(
        [
            {"x": x, "way": name, "seed": seed, "y": f(x) + luck[seed] + own * rng.standard_normal(), "error": None}
            for x in xs
            for name, f in groups.items()
            for seed in range(seeds)
        ]
    )


FALLS_AND_RISES = {"falls": lambda x: 6 - x, "rises": lambda x: x, "low": lambda x: 0}


def text_of(figure):
    return [text.get_text() for ax in figure.axes for text in ax.texts]


def test_the_winner_changes_where_the_lines_cross():
    found = crossings(made(FALLS_AND_RISES), "x", "y", "way")
    assert found[["after", "x", "before", "now"]].values.tolist() == [[2, 3, "falls", None], [3, 4, None, "rises"]]


def test_pairing_by_seed_sees_a_lead_that_the_seeds_spread_would_hide():
    frame = made({"a": lambda x: 0.1, "b": lambda x: 0.0})
    assert set(leads(frame, "x", "y", "way").winner) == {"a"}
    assert len(crossings(frame, "x", "y", "way")) == 0
    moved = frame.assign(seed=frame.seed + 1).where(frame.way == "b", frame)  # other seeds beside each other
    moved["seed"] = moved.seed.where(moved.seed < 8, 0)
    assert set(leads(moved, "x", "y", "way").winner) == {None}


def test_noise_crosses_nothing():
    frame = made({"a": lambda x: 0.0, "b": lambda x: 0.0}, shared=0, own=1, xs=range(3))
    assert set(leads(frame, "x", "y", "way").winner) == {None}
    assert len(crossings(frame, "x", "y", "way")) == 0


def test_lower_can_be_better_and_the_order_of_rows_does_not_matter():
    frame = made(FALLS_AND_RISES | {"low": lambda x: 9})
    found = crossings(frame.sample(frac=1, random_state=1), "x", "y", "way", lower_is_better=True)
    assert [*found.before] == ["rises", None]
    assert [*found.now] == [None, "falls"]


def test_fewer_than_five_seeds_or_a_single_group_win_nothing():
    for frame in (made(FALLS_AND_RISES, seeds=4), made({"alone": lambda x: x})):
        table = leads(frame, "x", "y", "way")
        assert set(table.winner) == {None}
        assert len(crossings(frame, "x", "y", "way")) == 0


def test_every_line_has_its_name_beside_the_plot_where_all_end_together_at_the_top():
    frame = made({name: lambda x: min(x, 4) for name in "abcd"}, shared=0, own=0.001)
    figure = plot_sweep(frame, "x", "y", "way", xlabel="x", ylabel="y", log_x=True)
    png(figure)  # names outside of the axes would not be drawn
    (ax,) = figure.axes
    bottom, top = ax.get_ylim()
    heights = sorted(text.xy[1] for text in ax.texts if text.get_text() in "abcd")
    assert len(heights) == 4
    assert bottom <= heights[0]
    assert heights[-1] <= top
    assert min(np.diff(heights)) > 0.07 * (top - bottom)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["1", "2", "3", "4", "5"]


def test_failed_cells_leave_their_group_out():
    frame = made(FALLS_AND_RISES)
    frame.loc[(frame.way == "falls") & (frame.x == 2), ["y", "error"]] = [np.nan, "ValueError: no"]
    table = leads(frame, "x", "y", "way").set_index("x")
    assert table.leader[2] == "rises"
    figure = plot_sweep(frame, "x", "y", "way", xlabel="x (days)", ylabel="y (share)")
    assert figure.get_supxlabel() == "8 of 120 cells failed and are left out"
    (line,) = [line for line in figure.axes[0].lines if line.get_linestyle() == "-" and line.get_ydata()[0] > 4]
    assert np.isnan(line.get_ydata()).tolist() == [False, True, False, False, False]


def test_a_group_whose_every_cell_failed_wins_nothing_and_stops_nobody():
    frame = made(FALLS_AND_RISES)
    frame.loc[frame.way == "low", "y"] = np.nan
    assert leads(frame, "x", "y", "way").winner[0] == "falls"


def test_a_parameter_left_open_is_an_error_that_names_the_cell():
    frame = made(FALLS_AND_RISES)
    with pytest.raises(ValueError, match="x=1, way=falls, seed=0 has several rows"):
        crossings(pd.concat([frame, frame]), "x", "y", "way")


def test_the_picture_marks_where_a_winner_stops_and_names_the_lines():
    figure = plot_sweep(made(FALLS_AND_RISES), "x", "y", "way", xlabel="x (days)", ylabel="y (share)", log_x=True)
    assert sorted(text_of(figure)) == ["falls", "falls stops winning here", "low", "rises"]
    assert figure.axes[0].get_xscale() == "log"
    assert figure.get_supxlabel() == ""
    assert png(figure, 40)


def test_a_map_shows_each_mean_and_where_nothing_came_back():
    frame = made({1: lambda x: 1, 2: lambda x: 2}, xs=(1, 2), shared=0, own=0)
    frame.loc[(frame.way == 2) & (frame.x == 1), "y"] = np.nan
    figure = plot_map(frame, "x", "way", "y", xlabel="x (days)", ylabel="k (memories)", unit="hit@3")
    assert text_of(figure)[:4] == ["1", "1", "failed", "2"]
    assert png(figure, 40)

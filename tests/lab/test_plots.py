"""What a picture is drawn with."""

from __future__ import annotations

import io
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib import rc_context, rcParams, style
from matplotlib.image import imread

from tri_memory.lab import plots


@pytest.mark.parametrize("chosen", ["default", "dark_background", {"savefig.transparent": True}])
def test_a_picture_has_dark_words_on_paper_of_its_own_whatever_style_was_chosen(chosen):
    with rc_context():
        style.use(chosen)
        figure, ax = plots.axes(title="title", xlabel="turn", ylabel="tokens")
        ax.text(0.5, 0.5, "word", bbox={"facecolor": "white"})
        pixels = imread(io.BytesIO(plots.png(figure, 40)))  # from 0 to 1
        assert {rcParams[ink] for ink in ("text.color", "xtick.color", "ytick.color")} == {"black"}
    assert pixels[..., 3].min() == 1, "opaque"
    assert tuple(pixels[0, 0]) == (1, 1, 1, 1)
    height, width = pixels.shape[:2]
    left = pixels[:, : width // 20, :3]  # the name of the y-axis
    middle = pixels[height // 3 : 2 * height // 3, width // 3 : 2 * width // 3, :3]
    for part in (left, middle):
        assert part.min() < 0.4, "dark words"
        assert np.median(part) == 1, "on white"


def test_a_chinese_font_that_was_installed_after_matplotlib_made_its_list_is_used(monkeypatch):
    fonts = SimpleNamespace(ttflist=[SimpleNamespace(name="DejaVu Sans")])
    fonts.addfont = lambda path: fonts.ttflist.append(SimpleNamespace(name={"msyh.ttc": "Microsoft YaHei"}[path]))
    monkeypatch.setattr(plots, "fontManager", fonts)
    monkeypatch.setattr(plots, "findSystemFonts", lambda: ["Arial.ttf", "msyh.ttc"])
    assert plots.installed_fonts() == ["DejaVu Sans", "Microsoft YaHei"]
    monkeypatch.setattr(plots, "findSystemFonts", lambda: 1 / 0)
    assert plots.installed_fonts() == ["DejaVu Sans", "Microsoft YaHei"], "a list that has one is not searched again"

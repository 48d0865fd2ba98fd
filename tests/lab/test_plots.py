"""What a picture is drawn with."""

from __future__ import annotations

from types import SimpleNamespace

from tri_memory.lab import plots


def test_a_chinese_font_that_was_installed_after_matplotlib_made_its_list_is_used(monkeypatch):
    fonts = SimpleNamespace(ttflist=[SimpleNamespace(name="DejaVu Sans")])
    fonts.addfont = lambda path: fonts.ttflist.append(SimpleNamespace(name={"msyh.ttc": "Microsoft YaHei"}[path]))
    monkeypatch.setattr(plots, "fontManager", fonts)
    monkeypatch.setattr(plots, "findSystemFonts", lambda: ["Arial.ttf", "msyh.ttc"])
    assert plots.installed_fonts() == ["DejaVu Sans", "Microsoft YaHei"]
    monkeypatch.setattr(plots, "findSystemFonts", lambda: 1 / 0)
    assert plots.installed_fonts() == ["DejaVu Sans", "Microsoft YaHei"], "a list that has one is not searched again"

"""The panel kit: a slider calls the model, one picture stands there, and without widgets a picture still does."""

from __future__ import annotations

import asyncio
import base64

import pytest

from tri_memory.lab import panel as kit
from tri_memory.lab.panel import Choice, Slider, Steps, Text, panel
from tri_memory.lab.plots import axes


def make(calls: list[dict], broken_at: int | None = None):
    def model(**values):
        calls.append(values)
        if values["size"] == broken_at:
            raise ValueError("size 13 brings bad luck")
        return values

    def draw(result):
        figure, ax = axes(3, 2, title="Sizes", xlabel="size (EU)", ylabel="pairs")
        ax.bar([0], [result["size"]])
        return figure

    controls = [Slider("size", 1, 20, 5, unit="EU"), Choice("language", ["en", "zh"])]
    return panel(model, draw, lambda r: f"size {r['size']} in {r['language']}", controls, title="Shoes <b>")


def test_a_move_calls_the_model_and_replaces_text_and_picture():
    calls: list[dict] = []
    shown = make(calls)
    first = shown.png
    shown.set(size=9)
    assert calls[-1] == {"size": 9, "language": "en"}
    assert shown.text == "size 9 in en"
    assert shown.png != first
    assert shown.png.startswith(b"\x89PNG")
    assert base64.b64encode(shown.png).decode() in shown.view.value


def test_twenty_moves_leave_one_picture():
    shown = make([])
    for size in range(1, 21):
        shown.set(size=size)
    assert shown.view.value.count("<img") == 1
    assert "size 20" in shown.view.value


async def test_a_quick_drag_is_drawn_once_at_its_end():
    calls: list[dict] = []
    shown = make(calls)
    drawn = len(calls)
    for size in range(1, 20):
        shown.controls["size"].value = size
    await asyncio.sleep(0.2)
    assert len(calls) - drawn == 1
    assert shown.text == "size 19 in en"


def test_a_model_that_raises_says_so_in_the_panel_and_recovers():
    shown = make([], broken_at=13)
    shown.set(size=13)
    assert "size 13 brings bad luck" in shown.view.value
    assert "alert" in shown.view.value
    shown.set(size=14)
    assert "size 14" in shown.view.value


def test_an_unknown_control_is_an_error_that_names_the_known_ones():
    with pytest.raises(ValueError, match="size, language"):
        make([]).set(colour="red")


def test_where_widgets_cannot_run_the_same_text_and_picture_stand():
    shown = make([])
    bundle = shown._repr_mimebundle_()
    assert bundle["text/plain"] == "Shoes <b>: size 5 in en"
    assert base64.b64decode(bundle["image/png"]) == shown.png
    assert "application/vnd.jupyter.widget-view+json" in bundle


def test_titles_and_texts_are_escaped_and_the_picture_has_an_alternative_text():
    shown = make([])
    assert 'alt="Shoes &lt;b&gt;: size 5 in en"' in shown.view.value
    assert "Shoes &lt;b&gt;" in shown.widget.children[0].value


def test_steps_are_a_slider_over_given_values_that_begins_where_it_is_told():
    shown = panel(
        lambda ef: ef,
        lambda ef: axes(3, 2, title=f"ef_search {ef}")[0],
        lambda ef: f"ef_search {ef}",
        [Steps("ef", ["10", "40", "100"], "40")],
        title="Steps",
    )
    assert shown.text == "ef_search 40"
    assert shown.set(ef="100").text == "ef_search 100"
    with pytest.raises(Exception, match="Invalid selection"):
        shown.set(ef="50")


def typing(calls: list[str]):
    def model(text):
        calls.append(text)
        return text

    return panel(
        model, lambda text: axes(3, 2, title="Typed")[0], lambda text: text, [Text("text", "a")], title="Typed"
    )


async def test_typing_is_followed_after_a_pause_and_not_at_each_key(monkeypatch):
    monkeypatch.setattr(kit, "TYPING_S", 0.2)
    calls: list[str] = []
    shown = typing(calls)
    for typed in ("ab", "abc", "abcd"):
        shown.controls["text"].value = typed
        await asyncio.sleep(0.05)  # quicker than the pause
    assert calls == ["a"]
    await asyncio.sleep(0.5)
    assert calls == ["a", "abcd"]


def test_a_text_may_be_empty_have_several_lines_and_html():
    shown = typing([])
    for typed in ("", "two\nlines", "<b>bold</b>", "订单号BX-2207"):
        assert shown.set(text=typed).text == typed
    assert "<b>bold" not in shown.set(text="<b>bold</b>").view.value
    assert shown.controls["text"].description == "text"

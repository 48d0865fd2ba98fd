"""A panel: sliders, a sentence, one picture. It only shows what a plain function computes.

`panel(model, draw, say, controls)` calls `model(**values)`, writes `say(result)` and draws `draw(result)`. The model is
an ordinary function, so tests and learners call it without any widget. Where widgets can't run, the same text and
picture stand there, as they were when the cell ran.
"""

from __future__ import annotations

import asyncio
import base64
import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ipywidgets as widgets
from matplotlib.figure import Figure

from tri_memory.lab.plots import png


@dataclass(frozen=True)
class Slider:
    """A whole number or a fraction from `least` to `most`; `unit` stands behind the label."""

    name: str
    least: float
    most: float
    start: float
    step: float = 1
    label: str = ""
    unit: str = ""

    def widget(self) -> widgets.Widget:
        whole = all(float(x).is_integer() for x in (self.least, self.most, self.start, self.step))
        kind, cast = (widgets.IntSlider, int) if whole else (widgets.FloatSlider, float)
        return kind(
            min=cast(self.least),
            max=cast(self.most),
            value=cast(self.start),
            step=cast(self.step),
            description=_label(self.label or self.name, self.unit),
            **_WIDE,
        )


@dataclass(frozen=True)
class Choice:
    """One of several options."""

    name: str
    options: Sequence[str]
    label: str = ""

    def widget(self) -> widgets.Widget:
        return widgets.Dropdown(options=list(self.options), description=_label(self.label or self.name, ""), **_WIDE)


@dataclass(frozen=True)
class Steps:
    """A slider over given values, such as those that were measured; `start` is one of them."""

    name: str
    options: Sequence[str]
    start: str
    label: str = ""

    def widget(self) -> widgets.Widget:
        description = _label(self.label or self.name, "")
        return widgets.SelectionSlider(options=list(self.options), value=self.start, description=description, **_WIDE)


@dataclass(frozen=True)
class Text:
    """A text to type into, of one line or several. The panel waits for a pause in the typing before it follows."""

    name: str
    start: str
    label: str = ""

    def widget(self) -> widgets.Widget:
        return widgets.Textarea(value=self.start, rows=3, description=_label(self.label or self.name, ""), **_WIDER)


Control = Slider | Steps | Choice | Text

TYPING_S, DRAGGING_S = 0.4, 0.03  # after the last key; after the first of a burst of slider events
_WIDE = {"style": {"description_width": "14em"}, "layout": widgets.Layout(width="36em", max_width="98%")}
_WIDER = {"style": {"description_width": "14em"}, "layout": widgets.Layout(width="60em", max_width="98%")}


class Panel:
    """What `panel` returns. `.set(name=value)` moves a slider; `.result`, `.text` and `.png` are what it shows now."""

    def __init__(
        self,
        model: Callable[..., Any],
        draw: Callable[[Any], Figure],
        say: Callable[[Any], str],
        controls: Sequence[Control],
        title: str,
    ) -> None:
        self.model, self.draw, self.say, self.title = model, draw, say, title
        self.controls = {control.name: control.widget() for control in controls}
        self.view = widgets.HTML()
        self.result: Any = None
        self.text, self.png = "", b""
        self._redraw: asyncio.TimerHandle | None = None
        for control in self.controls.values():
            control.observe(self._changed, names="value")
        heading = widgets.HTML(f"<b>{html.escape(title)}</b>")
        self.widget = widgets.VBox([heading, *self.controls.values(), self.view])
        self._update()

    @property
    def values(self) -> dict[str, Any]:
        return {name: control.value for name, control in self.controls.items()}

    def set(self, **values: Any) -> Panel:
        """Move sliders by name, as a hand would."""
        for name, value in values.items():
            if name not in self.controls:
                raise ValueError(f"no control {name!r}; this panel has {', '.join(self.controls)}")
            self.controls[name].value = value
        self._update()
        return self

    def _changed(self, change: Mapping[str, Any]) -> None:
        """Redraw once for a burst of events, so that a quick drag or typing leaves no queue of old pictures behind."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._update()
            return
        typed = isinstance(change["owner"], widgets.Textarea)
        if typed and self._redraw is not None:
            self._redraw.cancel()
            self._redraw = None
        if self._redraw is None:
            self._redraw = loop.call_later(TYPING_S if typed else DRAGGING_S, self._update)

    def _update(self) -> None:
        if self._redraw is not None:
            self._redraw.cancel()
            self._redraw = None
        try:
            self.result = self.model(**self.values)
            self.text = self.say(self.result)
            figure = self.draw(self.result)
            self.png = png(figure, dots_per_inch=110)
        except Exception as error:
            self.text = f"{type(error).__name__}: {error}"
            self.view.value = f'<p role="alert">{html.escape(self.text)}</p>'
            return
        self.view.value = self._html(int(figure.get_figwidth() * 92))

    def _html(self, width: int) -> str:
        source = base64.b64encode(self.png).decode()
        alt = html.escape(f"{self.title}: {self.text}", quote=True)
        return (
            f'<p aria-live="polite" style="font-size:1.1em;margin:.4em 0">{html.escape(self.text)}</p>'
            f'<img src="data:image/png;base64,{source}" alt="{alt}" style="width:{width}px;max-width:100%">'
        )

    def __repr__(self) -> str:
        return f"{self.title}: {self.text}"

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        bundle = dict(self.widget._repr_mimebundle_() or {})
        return bundle | {"text/plain": repr(self), "image/png": base64.b64encode(self.png).decode()}


def panel(
    model: Callable[..., Any],
    draw: Callable[[Any], Figure],
    say: Callable[[Any], str],
    controls: Sequence[Control],
    title: str,
) -> Panel:
    """Sliders over `model`: each move calls `model(**values)` and shows `say(result)` and `draw(result)`."""
    return Panel(model, draw, say, controls, title)


def _label(text: str, unit: str) -> str:
    text = text.replace("_", " ")
    return f"{text} ({unit})" if unit else text

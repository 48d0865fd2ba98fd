"""A room as the notebook shows it: the code to read, what it did to a conversation, and the answer, folded away."""

from __future__ import annotations

import html
import re

from tri_memory.lab.card import Card, folded
from tri_memory.lab.chapters.ch16.museum import EXHIBITS, Visit, first, visit
from tri_memory.lab.chapters.ch16.rates import INPUTS, LANGUAGES
from tri_memory.lab.plots import ORANGE


async def enter(name: str, language: str) -> Card:
    """The room `name` with the first of 20 inputs on which the broken version goes wrong; where none is, the first."""
    found = await first(name, language, inputs=INPUTS)
    seen = found or await visit(name, language, 0)
    exhibit = EXHIBITS[name]
    when = f"{LANGUAGES[language]}, input {seen.seed}"
    if found is None:
        when += f" (none of {INPUTS} went wrong)"
    did = f"{when}: {seen.broken.counted(exhibit.unit)}. {seen.broken.came}"
    title = f"{exhibit.title} · {exhibit.kind} · {exhibit.reference}"
    code = f"<pre style='overflow-x:auto;line-height:1.35'>{html.escape(exhibit.source)}</pre>"
    body = f"{code}<p style='margin:.6em 0'>{html.escape(did)}</p>"
    answer = "".join(f"<p style='margin:.3em 1.6em'>{_as_html(text)}</p>" for text in _answer(seen))
    body += folded("find the fault first, then look", answer)
    return Card(title, body, f"{exhibit.source}\n\n{did}", ORANGE)


def _answer(seen: Visit) -> tuple[str, ...]:
    its, ours = seen.exhibit, seen.ours
    return its.fault, f"Ours: {its.ours}", f"On the same input: {ours.counted(its.unit)}. {ours.came}"


def _as_html(text: str) -> str:
    return re.sub("`([^`]+)`", r"<code>\1</code>", html.escape(text))

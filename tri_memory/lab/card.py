"""Small boxes of HTML that read well on a dark and on a light page, and as plain text where there is no HTML."""

from __future__ import annotations

import html
from dataclasses import dataclass


@dataclass(frozen=True)
class Card:
    """A box with a coloured edge. `body` is HTML, `plain` the same for a terminal."""

    title: str
    body: str
    plain: str
    colour: str = "#0072B2"

    def __repr__(self) -> str:
        return f"{self.title}\n{self.plain}".strip()

    def _repr_html_(self) -> str:
        return (
            f'<div style="border-left:5px solid {self.colour};padding:.4em .9em;margin:.4em 0;max-width:52em">'
            f"<b>{html.escape(self.title)}</b>{self.body}</div>"
        )


def text_card(title: str, text: str, colour: str = "#0072B2") -> Card:
    """A box around plain text; line breaks stay."""
    return Card(title, f'<div style="white-space:pre-wrap">{html.escape(text)}</div>', text, colour)


def folded(summary: str, body: str) -> str:
    """HTML that opens on a click or on Enter. `summary` is plain text, `body` HTML."""
    return f"<details style='margin:.25em 0'><summary>{html.escape(summary)}</summary>{body}</details>"

"""What the guard rails make of a value: in -> stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd
import regex

from tri_memory.contracts import PreferenceStore

FAMILY = "👨\u200d👩\u200d👧"
VALUES: tuple[tuple[str, str], ...] = (
    ("spaces around it", "  size 41 "),
    ("a line break and a tab", "绿茶\n\t不加糖"),
    ("a zero-width space", "te\u200ba"),
    ("the order turned round", "\u202etea"),
    ("e and an accent (NFD)", "cafe\u0301"),
    ("one family of five code points", FAMILY),
    ("600 Chinese characters", "好" * 600),
    ("498 letters and a family", "x" * 498 + FAMILY),
    ("nothing one can see", "\u200b \u3164"),
)


class Stored(NamedTuple):
    """One row: what was sent, and what `set` and `get` said. Lengths in code points; graphemes are what a reader
    counts."""

    what: str
    sent: str
    points: int
    set: bool
    stored: str
    points_stored: int
    graphemes: int


async def through(store: PreferenceStore, user: str, values: Sequence[tuple[str, str]] = VALUES) -> pd.DataFrame:
    """Each value sent to the store and read again, a row each; the user is forgotten before and after."""
    await store.forget(user)
    found = []
    for number, (what, sent) in enumerate(values):
        accepted = await store.set(user, f"key {number}", sent)
        kept = await store.get(user, f"key {number}")
        graphemes = len(regex.findall(r"\X", kept or ""))
        found.append(Stored(what, escaped(sent), len(sent), accepted, _short(kept), len(kept or ""), graphemes))
    await store.forget(user)
    columns = ["value", "sent", "code points sent", "set", "stored", "code points stored", "graphemes stored"]
    return pd.DataFrame(found, columns=columns)


def escaped(text: str) -> str:
    """The text with what can't be seen written as an escape, shortened."""
    return "".join(f"\\u{ord(sign):04x}" if _invisible(sign) else sign for sign in _short(text))


def _invisible(sign: str) -> bool:
    return not sign.isprintable() or bool(regex.match(r"[\p{Mn}\u3164]", sign))


def _short(text: str | None) -> str:
    if text is None:
        return "None"
    return text if len(text) <= 24 else f"{text[:6]}…{text[-5:]}"

r"""One row of the table of `extract`, and how what it finds is normalised.

A pattern reads text whose full-width forms, hyphens and odd spaces were made plain, whatever the case, with `\w`, `\d`,
`\b` for ASCII only, so that a Chinese character bounds a word. The group `what` is the entity, the rest is context.
Every repeat is bounded (`{0,30}`, never `*` or `+`): that is what keeps the time in proportion to the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

from tri_memory.contracts import shown

Kind = Literal["PERSON_ID", "DEVICE_ID", "CASE_ID", "PREFERENCE"]
KINDS: tuple[str, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class Rule:
    r"""One row. `value` is a template for `{what}`, or a function of it. In `examples`, what the rule finds is in
    brackets, one entity each; `misses` look alike and must not be found. A test tries both.

    >>> rule = Rule("locker", "DEVICE_ID", r"\blocker (?P<what>\d{1,4})\b", "LOCKER-{what}", 0.9, ("at locker [27]",))
    >>> rule.value_of("27")
    'LOCKER-27'
    """

    name: str
    kind: Kind
    pattern: str
    value: str | Callable[[str], str]
    confidence: float
    examples: tuple[str, ...]
    misses: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require_kind(self.kind)
        require_confidence(self.confidence)
        try:
            groups = re.compile(self.pattern, re.ASCII | re.IGNORECASE).groupindex
        except re.error as error:
            raise ValueError(f"the pattern of rule {shown(self.name)} is no regular expression: {error}") from None
        if "what" not in groups:
            raise ValueError(f"the pattern of rule {shown(self.name)} has no group (?P<what>…), which is the entity")

    def value_of(self, what: str) -> str:
        return self.value(what) if callable(self.value) else self.value.replace("{what}", plain(what))


def require_kind(kind: Any) -> None:
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}; got {shown(kind)}")


def require_confidence(confidence: Any) -> None:
    if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0 < confidence <= 1:
        raise ValueError(f"confidence must be above 0 and at most 1; got {shown(confidence)}")


def code(what: str) -> str:
    """One spelling of an id: capitals, and a hyphen between its parts. `bx 2207`, `BX2207`, `#Bx_2207` -> `BX-2207`."""
    parts = re.findall(r"[A-Z0-9]+", what.upper())
    if len(parts) == 1 and (whole := re.fullmatch(r"([A-Z]+)([0-9]+[A-Z]?)", parts[0])):
        parts = list(whole.groups())
    return "-".join(parts)


def phone(what: str) -> str:
    """Digits only; a mainland mobile number without its country code, another country's with `+`."""
    digits = re.sub(r"\D", "", what)
    mainland = re.fullmatch(r"(?:00)?86(1\d{10})", digits)
    return mainland[1] if mainland else ("+" if what.startswith("+") else "") + digits


def plain(what: str) -> str:
    """Small letters and single spaces."""
    return " ".join(what.casefold().split())

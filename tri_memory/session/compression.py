"""When to fold old turns into the summary, and which: pure functions over a list of turns.

A history is `[application's own system turn] [summary turn] turn turn turn …`; the first two may be missing. A policy
weighs turns (by count or by tokens). A history heavier than its `high_line` is planned: which leading turns to fold.
The old summary is always among them, the newest turn never, and no tool result is parted from its call.
Who writes the summary, and what happens when that fails, is `folding.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import ceil
from typing import NamedTuple, Protocol

from tri_memory.contracts import ChatTurn, require_count, shown
from tri_memory.session.exchanges import exchanges, inside_exchanges
from tri_memory.session.tokens import estimate_tokens
from tri_memory.summary import PREFIXES, is_summary


class Span(NamedTuple):
    """The turns `[start, stop)` of a history. Empty means: nothing to fold."""

    start: int
    stop: int

    @property
    def empty(self) -> bool:
        return self.stop <= self.start


class CompressionPolicy(Protocol):
    """When a history is too heavy, and what to fold then."""

    @property
    def high_line(self) -> int:
        """A heavier history is folded."""

    @property
    def hard_line(self) -> int:
        """A heavier history is cut even where on_failure="keep", and even inside a tool exchange."""

    @property
    def summary_line(self) -> int:
        """A heavier summary is refused."""

    def weigh(self, turn: ChatTurn) -> int:
        """What a turn weighs, in the policy's own unit."""

    def plan(self, turns: Sequence[ChatTurn], weights: Sequence[int]) -> Span:
        """Which turns to fold now; `weights` are theirs."""


@dataclass(frozen=True)
class CountPolicy:
    """Fold by count: over `compress_after` turns, all but the last `keep_recent` go into the summary turn.

    `hard_cap` is where patience with a failing summariser ends (default: five times `compress_after`).
    """

    compress_after: int = 40
    keep_recent: int = 20
    hard_cap: int | None = None

    def __post_init__(self) -> None:
        require_count("keep_recent", self.keep_recent, least=1)
        require_count("compress_after", self.compress_after, least=self.keep_recent + 1)
        if self.hard_cap is not None:
            require_count("hard_cap", self.hard_cap, least=self.compress_after)

    @property
    def high_line(self) -> int:
        return self.compress_after

    @property
    def hard_line(self) -> int:
        return self.hard_cap if self.hard_cap is not None else 5 * self.compress_after

    @property
    def summary_line(self) -> int:
        return self.compress_after

    def weigh(self, turn: ChatTurn) -> int:
        return 1

    def plan(self, turns: Sequence[ChatTurn], weights: Sequence[int]) -> Span:
        if len(turns) <= self.high_line:
            return Span(0, 0)
        wanted = len(turns) - self.keep_recent
        return _plan(turns, weights, self.hard_line, lambda cuts: _before_or_after(cuts, wanted))


@dataclass(frozen=True)
class TokenWatermark:
    """Fold by tokens: above `high` × `context_tokens`, the shortest head that brings the rest to `low` or below.

    The summary that is still to be written is reckoned at its prefix and `summary_tokens`, or a fifth of the low line
    where that is less, and at no less than the summary that stands there now.
    A turn costs `count(content)` tokens; pass a tokenizer's own count where the estimate is not enough.
    """

    context_tokens: int
    high: float = 0.75
    low: float = 0.50
    count: Callable[[str], int] = estimate_tokens
    summary_tokens: int = 150

    def __post_init__(self) -> None:
        require_count("context_tokens", self.context_tokens, least=1)
        require_count("summary_tokens", self.summary_tokens)
        if (
            not all(isinstance(share, int | float) for share in (self.low, self.high))
            or not 0 < self.low < self.high <= 1
        ):
            raise ValueError(f"needs 0 < low < high <= 1; got low={shown(self.low)}, high={shown(self.high)}")
        if not callable(self.count):
            raise ValueError(f"count must be a function from text to a number of tokens; got {shown(self.count)}")

    @property
    def high_line(self) -> int:
        return int(self.high * self.context_tokens)

    @property
    def low_line(self) -> int:
        return int(self.low * self.context_tokens)

    @property
    def hard_line(self) -> int:
        return self.context_tokens

    @property
    def summary_line(self) -> int:
        return self.low_line

    def weigh(self, turn: ChatTurn) -> int:
        return ceil(self.count(turn.content))

    def plan(self, turns: Sequence[ChatTurn], weights: Sequence[int]) -> Span:
        total = sum(weights)
        if total <= self.high_line or self._gains_too_little(turns, weights):
            return Span(0, 0)
        to_shed = total + self._summary_cost(turns, weights) - self.low_line
        start = _pinned(turns)
        shed = accumulate(weights[start:])
        wanted = next((i for i, weight in enumerate(shed, start + 1) if weight >= to_shed), len(turns))
        return _plan(turns, weights, self.hard_line, lambda cuts: _after_or_before(cuts, wanted))

    def _gains_too_little(self, turns: Sequence[ChatTurn], weights: Sequence[int]) -> bool:
        """With an own system turn that alone fills the window to the high line, every append is over it. Then a fold
        waits until it can shed half of what is left of the window, or a quarter of the low line."""
        pinned = weights[0] if _pinned(turns) else 0
        if pinned <= self.high_line:
            return False
        sheddable = sum(weights[head(turns) : -1])
        return sheddable < max(self.context_tokens - pinned, self.low_line // 2) // 2

    def _summary_cost(self, turns: Sequence[ChatTurn], weights: Sequence[int]) -> int:
        reckoned = self.count(PREFIXES["en"]) + min(self.summary_tokens, self.low_line // 5)
        return max(reckoned, *(w for w, turn in zip(weights[:2], turns[:2], strict=True) if is_summary(turn)), 0)


def head(turns: Sequence[ChatTurn]) -> int:
    """How many leading turns never fall out of a window: the application's own system turn, the summary turn."""
    pinned = _pinned(turns)
    return pinned + (len(turns) > pinned and is_summary(turns[pinned]))


def window(turns: Sequence[ChatTurn], limit: int) -> list[ChatTurn]:
    """The head, then the last `limit` other turns without the tool results whose call was cut off."""
    first = head(turns)
    start = max(first, len(turns) - limit)
    if start == first:
        kept = list(turns[start:])
    else:
        call_of = dict(exchanges(turns)[0])
        kept = [turns[i] for i in range(start, len(turns)) if call_of.get(i, i) >= start]
    while kept and kept[0].role == "tool" and len(turns) > len(kept):
        del kept[0]
    return [*turns[:first], *kept]


def _pinned(turns: Sequence[ChatTurn]) -> int:
    return 1 if turns and turns[0].role == "system" and not is_summary(turns[0]) else 0


def _plan(
    turns: Sequence[ChatTurn], weights: Sequence[int], hard_line: int, pick: Callable[[list[int]], int | None]
) -> Span:
    """The span up to the cut that `pick` takes. An exchange is cut in two only where that alone gets below the line."""

    def rest(span: Span) -> int:
        return sum(weights) - sum(weights[span.start : span.stop])

    whole = _span(turns, pick(_cuts(turns)))
    if rest(whole) <= hard_line:
        return whole
    parted = _span(turns, pick(_cuts(turns, anywhere=True)))
    return parted if rest(parted) <= hard_line else whole


def _span(turns: Sequence[ChatTurn], stop: int | None) -> Span:
    """From behind the pinned turn to `stop`; empty where that would condense nothing but the old summary."""
    start = _pinned(turns)
    return Span(start, stop) if stop is not None and stop > head(turns) else Span(start, start)


def _cuts(turns: Sequence[ChatTurn], anywhere: bool = False) -> list[int]:
    """Where a history may be cut: the new part begins at such an index. The newest turn is never cut off."""
    inside = set() if anywhere else inside_exchanges(turns)
    return [i for i in range(head(turns) + 1, len(turns)) if i not in inside]


def _before_or_after(cuts: list[int], wanted: int) -> int | None:
    """The last cut up to `wanted`, else the first behind it: rather keep a turn too many."""
    return max((cut for cut in cuts if cut <= wanted), default=min(cuts, default=None))


def _after_or_before(cuts: list[int], wanted: int) -> int | None:
    """The first cut from `wanted` on, else the last before it: rather fold a turn too many."""
    return min((cut for cut in cuts if cut >= wanted), default=max(cuts, default=None))

"""A prompt that keeps to a number of tokens: which items of which layer go in, and why the others don't. All pure.

System text and question always go in. All other items stand in one queue, whatever the budget: each layer pays for its
items, best first, at the pace of its share, and who has paid comes next (weighted fair queueing, Demers, Keshav and
Shenker 1989, doi:10.1145/75246.75248). The prompt is the longest beginning of the queue that fits. So a layer with
little to say leaves its room to the others in proportion to their shares, and a larger budget only adds items.

Inside its fence the best item stands first, the second best last, the worst in the middle, where models overlook most:
Liu et al. (2023), Lost in the Middle, arXiv:2307.03172. What it does not do: cut an item in two, or fill the room that
the first item to be left out leaves with smaller ones from behind it in the queue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import merge
from itertools import accumulate
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

from tri_memory.agent import prompt
from tri_memory.agent.prompt import SYSTEM, Fact, Message, Section
from tri_memory.contracts import ChatTurn, Recollection, require_count, shown
from tri_memory.session.exchanges import inside_exchanges
from tri_memory.session.tokens import estimate_tokens
from tri_memory.summary import is_summary

Count = Callable[[str], int]
T = TypeVar("T")

LAYERS = ("window", "facts", "preferences", "episodes")  # of equals in the queue the first comes first
SHARES: Mapping[str, float] = {"window": 0.4, "facts": 0.2, "preferences": 0.2, "episodes": 0.2}


@dataclass(frozen=True, slots=True)
class LeftOut:
    """One item that is not in the prompt: its text as it would stand there, its price, and why."""

    layer: str  # window, facts, preferences, episodes
    item: str
    tokens: int
    reason: str


@dataclass(frozen=True, slots=True)
class Filled:
    """A prompt and its bill. `tokens` is the sum over the sections; `over` is how many of them exceed the budget, which
    happens only where system text and question alone do. What went in is there again, in the order of the prompt."""

    messages: list[Message]
    sections: list[Section]
    left_out: list[LeftOut]
    tokens: int
    over: int
    window: list[ChatTurn] = field(default_factory=list)
    preferences: dict[str, str] = field(default_factory=dict)
    episodes: list[Recollection] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)


class _Item(NamedTuple):
    layer: str
    value: Any  # places of turns, (key, value), Recollection or Fact
    text: str
    tokens: int  # with its line break, and for the first of a layer with the fence around it


def fill(
    window: Sequence[ChatTurn],
    *,
    budget: int,
    preferences: Mapping[str, str] | None = None,
    episodes: Sequence[Recollection] = (),
    facts: Sequence[Fact] = (),
    system: str = SYSTEM,
    shares: Mapping[str, float] = SHARES,
    count: Count = estimate_tokens,
) -> Filled:
    """The prompt of at most `budget` tokens, by `count` a line.

    `window` is oldest first, and its last turn is the question; of the others the summary counts as best, then the
    newest. The application's own system turn at its head always goes in. A tool's call and result are one item.
    `preferences`, `episodes` and `facts` come best first. A share of 0, or none, keeps a layer out.
    Raises ValueError for a budget below 1, an empty window, and shares that are negative, all 0, or of another layer.
    """
    require_count("budget", budget, least=1)
    if not window:
        raise ValueError("the window needs the question as its last turn; got no turn")
    require_shares(shares)
    head, rest, question = _parted(window)
    always = count(f"{system.strip()}\n\n") + sum(count(f"{_turn_text(turn)}\n") for turn in (*head, question))
    layers = {
        "window": _items("window", _exchanges(rest), lambda places: _turns_text(rest, places), count),
        "facts": _items("facts", facts, prompt.fact_line, count),
        "preferences": _items("preferences", (preferences or {}).items(), lambda p: prompt.preference_line(*p), count),
        "episodes": _items("episodes", episodes, prompt.episode_line, count),
    }
    kept, left_out = _longest_beginning(_queue(layers, shares), budget, always)
    left_out += [_no_share(item) for name in LAYERS if not shares.get(name) for item in layers[name]]
    chosen: dict[str, list[Any]] = {name: [item.value for item in kept if item.layer == name] for name in LAYERS}
    turns = [
        *head,
        *(rest[place] for place in sorted(place for places in chosen["window"] for place in places)),
        question,
    ]
    known: dict[str, Any] = {
        "preferences": dict(at_edges(chosen["preferences"])),
        "episodes": at_edges(chosen["episodes"]),
        "facts": at_edges(chosen["facts"]),
    }
    parts = [Section(s.name, s.text, count(s.text)) for s in prompt.sections(turns, system=system, **known)]
    messages = prompt.assemble(turns, system=system, **known)
    tokens = sum(part.tokens for part in parts)
    return Filled(messages, parts, left_out, tokens, max(0, tokens - budget), window=turns, **known)


def at_edges(best_first: Sequence[T]) -> list[T]:
    """The best first, the second best last, and so on inwards.

    >>> at_edges([1, 2, 3, 4, 5])
    [1, 3, 5, 4, 2]
    """
    return [*best_first[::2], *best_first[1::2][::-1]]


def require_shares(shares: Mapping[str, float]) -> None:
    """ValueError for shares that are negative, not finite, all 0, or of a layer that there isn't."""
    unknown = [name for name in shares if name not in LAYERS]
    if unknown:
        raise ValueError(f"a share belongs to one of {', '.join(LAYERS)}; got {shown(unknown[0])}")
    for name, share in shares.items():
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share < float("inf"):
            raise ValueError(f"the share of {name} must be a number of at least 0; got {shown(share)}")
    if not any(shares.values()):
        raise ValueError("one layer at least needs a share above 0; all are 0")


def _parted(window: Sequence[ChatTurn]) -> tuple[list[ChatTurn], list[ChatTurn], ChatTurn]:
    """The application's own system turn, if there is one; what may be left out; the question."""
    *before, question = window
    own = 1 if before and before[0].role == "system" and not is_summary(before[0]) else 0
    return before[:own], before[own:], question


def _exchanges(turns: Sequence[ChatTurn]) -> list[tuple[int, ...]]:
    """The places of turns that belong together, best first: the summary, then the newest."""
    together: list[list[int]] = []
    inside = inside_exchanges(turns)
    for place in range(len(turns)):
        if place in inside and together:
            together[-1].append(place)
        else:
            together.append([place])
    summaries = [group for group in together if is_summary(turns[group[0]])]
    others = [group for group in reversed(together) if not is_summary(turns[group[0]])]
    return [tuple(group) for group in summaries + others]


def _turns_text(turns: Sequence[ChatTurn], places: Iterable[int]) -> str:
    return "\n".join(_turn_text(turns[place]) for place in places)


def _turn_text(turn: ChatTurn) -> str:
    """As `sections` prices it."""
    message = prompt.as_message(turn)
    return message["content"] if is_summary(turn) else f"{message['role']}: {message['content']}"


def _items(layer: str, values: Iterable[T], text_of: Callable[[T], str], count: Count) -> list[_Item]:
    items = [_Item(layer, value, text, count(f"{text}\n")) for value in values if (text := text_of(value))]
    if items and layer != "window":
        fence = count(f'<memory name="{layer}">\n') + count("</memory>\n\n")
        items[0] = items[0]._replace(tokens=items[0].tokens + fence)
    return items


def _queue(layers: Mapping[str, list[_Item]], shares: Mapping[str, float]) -> list[_Item]:
    """By when each item is paid for, if a layer with share s pays s tokens a round."""
    waits = []
    for number, name in enumerate(LAYERS):
        if share := shares.get(name, 0):
            paid = accumulate(item.tokens for item in layers[name])
            waits.append([(tokens / share, number, item) for tokens, item in zip(paid, layers[name], strict=True)])
    return [item for _, _, item in merge(*waits, key=itemgetter(0, 1))]


def _longest_beginning(queue: Sequence[_Item], budget: int, always: int) -> tuple[list[_Item], list[LeftOut]]:
    room, place = budget - always, 0
    while place < len(queue) and queue[place].tokens <= room:
        room, place = room - queue[place].tokens, place + 1
    if place == len(queue):
        return list(queue), []
    item = queue[place]
    if always > budget:
        first = then = f"system text and question alone take {always} of the {budget} tokens"
    else:
        first = f"costs {item.tokens} tokens, and {room} of {budget} were left"
        then = (
            f"stands behind an item of {item.layer} that costs {item.tokens} tokens, and {room} of {budget} were left"
        )
    reasons = [first, *[then] * (len(queue) - place - 1)]
    rest = zip(queue[place:], reasons, strict=True)
    return list(queue[:place]), [LeftOut(each.layer, each.text, each.tokens, why) for each, why in rest]


def _no_share(item: _Item) -> LeftOut:
    return LeftOut(item.layer, item.text, item.tokens, f"{item.layer} has no share of the budget")

"""A recorded conversation replayed through a store with its meter running: every prompt, every summary, in tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from inspect import isawaitable

from tri_memory.contracts import ChatTurn
from tri_memory.lab.datasets import Dataset
from tri_memory.lab.survival import stands_in, told_facts
from tri_memory.session.compression import CompressionPolicy, CountPolicy, head
from tri_memory.session.memory import InMemorySessionStore
from tri_memory.session.tokens import estimate_tokens
from tri_memory.summary import Summarizer

# A replay counts the same turns again and again; the answer is kept, not guessed anew.
tokens_in = lru_cache(maxsize=50_000)(estimate_tokens)

NEVER = CountPolicy(compress_after=100_000, keep_recent=1)


class ContextOverflow(Exception):
    """What an API answers to a prompt that is larger than the model's context window."""


class SmallModel:
    """A model with a context window of `context_tokens`: it answers, or refuses as APIs do. It isn't clever."""

    def __init__(self, context_tokens: int) -> None:
        self.context_tokens = context_tokens

    def __call__(self, prompt: Sequence[ChatTurn]) -> str:
        """An answer; ContextOverflow for a prompt that does not fit."""
        tokens = total(prompt)
        if tokens > self.context_tokens:
            raise ContextOverflow(
                f"this model's context window is {self.context_tokens:,} tokens, your messages have {tokens:,}"
            )
        return "…"


def total(turns: Sequence[ChatTurn]) -> int:
    """What these turns cost together, in tokens. A real API adds about four for each turn's role and marks."""
    return sum(tokens_in(turn.content) for turn in turns)


@dataclass(frozen=True)
class Fold:
    """A fold after `turn` turns: tokens in the history before and after, what the summary cost, in and out, what it
    says, and how many of the said turns now stand in it and no longer in the history."""

    turn: int
    before: int
    after: int
    summary_tokens: int
    summary: str
    folded: int


@dataclass(frozen=True)
class Bill:
    """A conversation and what it cost.

    `sizes[i]` is what the history holds after turn i + 1, in tokens; `prompts` the (turn, tokens) of each model call,
    one before every assistant turn; `refused` those of them above the window; `history` what is left at the end.
    """

    sizes: tuple[int, ...]
    prompts: tuple[tuple[int, int], ...]
    refused: tuple[tuple[int, int], ...]
    folds: tuple[Fold, ...]
    summary_calls: int
    history: tuple[ChatTurn, ...]

    @property
    def largest(self) -> int:
        """The most that the history ever held, just before a fold included."""
        return max([*self.sizes, *(fold.before for fold in self.folds)], default=0)

    @property
    def prompt_tokens(self) -> int:
        return sum(tokens for _, tokens in self.prompts)

    @property
    def summary_tokens(self) -> int:
        return sum(fold.summary_tokens for fold in self.folds)

    @property
    def price(self) -> int:
        """Tokens for the whole conversation: all prompts, all that was summarised, all summaries.

        Refused prompts are among them: it is what a model with room for all would bill.
        """
        return self.prompt_tokens + self.summary_tokens


class _Metered:
    """A summariser that notes what each call costs."""

    def __init__(self, summarizer: Summarizer) -> None:
        self.summarizer = summarizer
        self.calls = self.tokens = 0

    async def __call__(self, span: Sequence[ChatTurn]) -> str:
        self.calls += 1
        text = self.summarizer(span)
        if isawaitable(text):
            text = await text
        self.tokens += total(span) + tokens_in(text)
        return text


async def replay(
    turns: Sequence[ChatTurn], policy: CompressionPolicy, summarizer: Summarizer | None, *, window: int = 10**9
) -> Bill:
    """Append the recorded turns one by one; before each assistant turn the whole history goes to a model.

    The recording goes on after a refused call, so that all policies see the same turns.
    """
    meter = _Metered(summarizer) if summarizer else None
    store = InMemorySessionStore(policy=policy, summarizer=meter, summary_timeout_s=120)
    sizes: list[int] = []
    prompts: list[tuple[int, int]] = []
    folds: list[Fold] = []
    size = 0
    for number, turn in enumerate(turns, start=1):
        if turn.role == "assistant":
            prompts.append((number - 1, size))
        spent = meter.tokens if meter else 0
        known = len(store.trace)
        await store.append("desk", turn)
        size += tokens_in(turn.content)
        if len(store.trace) > known:
            history = await store.get_history("desk")
            first = head(history)
            summary = "\n".join(turn.content for turn in history[:first])
            before, size = size, total(history)
            cost = (meter.tokens if meter else 0) - spent
            folds.append(Fold(number, before, size, cost, summary, number - len(history) + first))
        sizes.append(size)
    refused = tuple(prompt for prompt in prompts if prompt[1] > window)
    calls = meter.calls if meter else 0
    return Bill(tuple(sizes), tuple(prompts), refused, tuple(folds), calls, tuple(await store.get_history("desk")))


def facts_of(dataset: Dataset, user: str) -> list[str]:
    """The facts that gold questions about `user` need."""
    return [fact for _, fact, _ in told_facts(dataset, user)]


def still_said(facts: Iterable[str], history: Sequence[ChatTurn]) -> dict[str, bool]:
    """Each fact, and whether `history` still says it to the letter."""
    text = "\n".join(turn.content for turn in history)
    return {fact: stands_in(fact, text) for fact in facts}


def facts_by_turn(facts: Sequence[str], turns: Iterable[ChatTurn]) -> list[set[str]]:
    """The facts that each turn says."""
    return [{fact for fact in facts if stands_in(fact, turn.content)} for turn in turns]


def at_hand(bill: Bill, told: Sequence[set[str]]) -> float:
    """How much of what was told stands in the prompts: of the facts told so far, the share in a prompt, averaged over
    all prompts. `told` is `facts_by_turn` of the conversation."""
    everything = set().union(*told)
    shares = []
    for turn, _ in bill.prompts:
        so_far = set().union(*told[:turn])
        fold = max((fold for fold in bill.folds if fold.turn <= turn), key=lambda fold: fold.turn, default=None)
        here = set().union(*told[fold.folded if fold else 0 : turn])
        if fold:
            here |= said_in(fold.summary, frozenset(everything))
        if so_far:
            shares.append(len(so_far & here) / len(so_far))
    return sum(shares) / len(shares)


@lru_cache(maxsize=1_000)
def said_in(text: str, facts: frozenset[str]) -> frozenset[str]:
    """Those of `facts` that `text` says to the letter."""
    return frozenset(fact for fact in facts if stands_in(fact, text))

"""Which turns a fold takes: pure functions, so every rule is a property."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tri_memory import ChatTurn, CountPolicy, TokenWatermark
from tri_memory.session.compression import Span, head, window
from tri_memory.summary import is_summary, summary_text, summary_turn


def turns(*roles: str) -> list[ChatTurn]:
    """`turns("user", "call a", "tool a")`: numbered turns; `call x` is an assistant turn that calls tool x."""
    made = []
    for i, role in enumerate(roles):
        kind, _, tool = role.partition(" ")
        made.append(ChatTurn("assistant" if kind == "call" else kind, f"{i}", tool or None))
    return made


def plan(policy: CountPolicy | TokenWatermark, history: list[ChatTurn]) -> Span:
    return policy.plan(history, [policy.weigh(turn) for turn in history])


USER_AND_ASSISTANT = ("user", "assistant")
conversations = st.lists(st.sampled_from(["user", "assistant", "call a", "call b", "tool a", "tool b"]), max_size=90)


def test_up_to_forty_turns_nothing_is_folded_and_at_forty_one_all_but_twenty():
    history = turns(*USER_AND_ASSISTANT * 30)
    assert plan(CountPolicy(), history[:40]).empty
    assert plan(CountPolicy(), history[:41]) == Span(0, 21)


def test_the_old_summary_is_part_of_the_next_fold():
    history = [summary_turn("old"), *turns(*USER_AND_ASSISTANT * 20)]
    assert plan(CountPolicy(), history) == Span(0, 21)


def test_the_applications_own_system_turn_stays_before_the_summary():
    history = [ChatTurn("system", "You are a shop."), *turns(*USER_AND_ASSISTANT * 30)]
    assert plan(CountPolicy(), history) == Span(1, 41)
    folded = [history[0], summary_turn("s"), *history[41:]]
    assert head(folded) == 2
    assert window(folded, 3) == [*folded[:2], *folded[-3:]]


def test_a_cut_between_a_call_and_its_result_moves_before_the_call():
    history = turns(*["user"] * 20, "call a", "tool a", *["user"] * 19)
    assert plan(CountPolicy(), history) == Span(0, 20)


def test_parallel_calls_and_their_results_stay_together():
    history = turns(*["user"] * 19, "call a", "call b", "tool b", "tool a", *["user"] * 18)
    assert plan(CountPolicy(), history) == Span(0, 19)


def test_a_result_without_a_name_belongs_to_the_assistant_turn_before_it():
    history = turns(*["user"] * 20, "assistant", "tool", *["user"] * 19)
    assert plan(CountPolicy(), history) == Span(0, 20)


def test_a_call_still_waiting_for_its_result_is_not_folded_away_from_it():
    history = turns(*["user"] * 21, "call a", *["assistant"] * 19)
    assert plan(CountPolicy(), history) == Span(0, 21)


def test_a_tool_exchange_longer_than_the_hard_line_is_cut_all_the_same():
    history = turns("user", *["call a"] * 60, *["tool a"] * 60)
    assert plan(CountPolicy(hard_cap=200), history) == Span(0, 1)
    assert plan(CountPolicy(hard_cap=100), history).stop == 101


def test_a_result_that_lifts_the_total_over_the_window_keeps_its_call():
    history = [*(ChatTurn("user", "x" * 40) for _ in range(18)), ChatTurn("assistant", "x" * 40, "t")]
    history.append(ChatTurn("tool", "x" * 400, "t"))
    assert plan(TokenWatermark(1_000, count=len), history) == Span(0, 18)
    history[-1] = ChatTurn("tool", "x" * 4_000, "t")
    assert plan(TokenWatermark(1_000, count=len), history) == Span(0, 18), "parting them would not help"


@given(conversations)
@example([*["user"] * 7, "tool a", "tool a", *["user"] * 4])
def test_no_fold_parts_a_result_from_its_call(roles):
    history = turns(*roles)
    span = plan(CountPolicy(compress_after=12, keep_recent=5, hard_cap=1_000), history)
    if span.empty or span.stop == len(history):
        return
    assert history[span.stop].role != "tool" or history[span.stop - 1].role not in ("assistant", "tool")
    later = [turn.tool_name for turn in history[span.stop :]]
    until_user = next((i for i, t in enumerate(history[span.stop :]) if t.role == "user"), len(later))
    answered = [t.tool_name for t in history[span.stop : span.stop + until_user] if t.role == "tool"]
    before = history[span.start : span.stop]
    for i, turn in enumerate(before):
        is_open = (
            turn.role == "assistant" and turn.tool_name and not any(t.role in ("user", "tool") for t in before[i:])
        )
        assert not (is_open and turn.tool_name in answered)


@given(conversations, st.integers(0, 30))
def test_a_window_is_the_end_of_the_history_without_results_whose_call_was_cut_off(roles, limit):
    history = turns("user", *roles)
    seen = window(history, limit)
    assert not seen or seen[0].role != "tool"
    if limit >= len(history):
        assert seen == history
        return
    last = history[len(history) - limit :]
    assert [turn for turn in last if turn.role != "tool"] == [turn for turn in seen if turn.role != "tool"]
    places = {turn.content: i for i, turn in enumerate(history)}
    assert [places[turn.content] for turn in seen] == sorted(places[turn.content] for turn in seen)
    assert set(seen) <= set(last)


def test_a_call_that_never_got_its_result_does_not_empty_the_window():
    history = turns("user", "call slow", *["call fast", "tool fast"] * 15, "assistant")
    assert window(history, 20) == history[-19:]
    history = turns("user", *[f"call {i}" for i in range(11)], *[f"tool {i}" for i in range(11)])
    assert [turn.tool_name for turn in window(history, 20)] == [*map(str, range(2, 11)), *map(str, range(2, 11))]


def test_a_huge_system_turn_does_not_mean_a_summary_at_every_append():
    policy = TokenWatermark(8_000, count=len)
    history = [ChatTurn("system", "x" * 6_100)]
    folds = 0
    for _ in range(60):
        history.append(ChatTurn("user", "y" * 20))
        span = plan(policy, history)
        if not span.empty:
            folds += 1
            history[span.start : span.stop] = [summary_turn("short")]
    assert folds <= 2


def test_a_window_of_zero_is_just_the_summary():
    history = [summary_turn("s"), *turns(*USER_AND_ASSISTANT)]
    assert window(history, 0) == history[:1]


def test_of_a_parallel_exchange_a_window_keeps_the_pairs_it_holds_whole():
    history = turns("user", "call a", "call b", "tool b", "tool a", "assistant")
    assert window(history, 4) == [history[2], history[3], history[5]]
    assert window(history, 5) == history[1:]


sizes = st.lists(st.integers(0, 60), min_size=1, max_size=60)


@given(sizes, st.integers(10, 400))
def test_a_watermark_fold_is_the_shortest_that_reaches_the_low_line(lengths, context):
    policy = TokenWatermark(context, count=len)
    history = [ChatTurn("user", "x" * n) for n in lengths]
    span = plan(policy, history)
    total = sum(lengths)
    assert span.empty or total > policy.high_line
    if total <= policy.high_line:
        return
    assert span.stop < len(history) or len(history) == 1, "the newest turn is never folded"
    summary = len("[conversation summary] ") + min(policy.summary_tokens, policy.low_line // 5)

    def after(stop: int) -> int:
        return total - sum(lengths[:stop]) + summary

    if not span.empty:
        assert after(span.stop) <= policy.low_line or span.stop == len(history) - 1
        assert span.stop == 1 or after(span.stop - 1) > policy.low_line


def test_a_last_turn_ten_times_the_budget_is_kept_and_nothing_is_folded_again_and_again():
    policy = TokenWatermark(100, count=len)
    huge = ChatTurn("user", "x" * 1_000)
    assert plan(policy, [huge]).empty
    assert plan(policy, [summary_turn("s"), huge]).empty
    assert plan(policy, [ChatTurn("user", "hi"), huge]) == Span(0, 1)


@pytest.mark.parametrize(
    ("text", "prefix"), [("喜欢靠窗", "[会话摘要] "), ("likes windows", "[conversation summary] ")]
)
def test_a_summary_turn_has_the_prefix_of_its_language_once(text, prefix):
    turn = summary_turn(text)
    assert turn == ChatTurn("system", prefix + text)
    assert is_summary(turn)
    assert summary_text(turn) == text
    assert summary_turn(turn.content) == turn


def test_a_user_who_types_the_prefix_has_not_written_a_summary():
    assert not is_summary(ChatTurn("user", "[conversation summary] I own the shop"))


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: CountPolicy(compress_after=20, keep_recent=20), "compress_after"),
        (lambda: CountPolicy(keep_recent=0), "keep_recent"),
        (lambda: CountPolicy(compress_after="40"), "compress_after"),
        (lambda: CountPolicy(hard_cap=3), "hard_cap"),
        (lambda: TokenWatermark(0), "context_tokens"),
        (lambda: TokenWatermark(8_000, high=0.5, low=0.5), "low < high"),
        (lambda: TokenWatermark(8_000, high=1.2), "high <= 1"),
        (lambda: TokenWatermark(8_000, high="most"), "most"),
        (lambda: TokenWatermark(8_000, count=3), "count"),
    ],
)
def test_thresholds_that_make_no_sense_are_refused_by_name(make, named):
    with pytest.raises(ValueError, match=named):
        make()

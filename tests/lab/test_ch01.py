"""Chapter 01: the leak leaks, the panel shows the very prompt, and the measurement says what the data say."""

from __future__ import annotations

import pandas as pd
import pytest

from tri_memory import ChatTurn, InMemoryPreferenceStore, InMemorySessionStore
from tri_memory.lab import datasets
from tri_memory.lab.chapters.ch01 import bill, coverage, cuts, desk, panel
from tri_memory.lab.survival import stands_in
from tri_memory.session.compression import window

LANGUAGES = ("en", "zh")
CALL, RESULT = ChatTurn("assistant", "look(1)", "look"), ChatTurn("tool", "1", "look")
ASK, SAY = ChatTurn("user", "?"), ChatTurn("assistant", "!")


@pytest.mark.parametrize(
    ("question", "secret"),
    [
        ("Which door was it for the delivery?", "14 Quarry Lane"),
        ("When can I be reached by phone?", "nurse"),
    ],
)
async def test_a_shared_session_id_tells_a_stranger_and_one_of_his_own_does_not(question, secret):
    english = datasets.load("en")
    maeve, desmond = english.of("en-shop-01")[0].turns, english.of("en-shop-02")[0].turns[:5]
    store = InMemorySessionStore()
    await desk.tell(store, "tablet", [*maeve, *desmond])
    await desk.tell(store, "his own", desmond)
    assert secret in await desk.ask(store, "tablet", question)
    assert secret not in await desk.ask(store, "his own", question)


async def test_the_order_number_is_found_only_where_the_visit_is_sent():
    store = InMemorySessionStore()
    await desk.tell(store, "s", datasets.load("en").of("en-shop-01")[0].turns[:6])
    assert "BX-2207" in await desk.ask(store, "s", "What was my order number again?")
    assert "BX-2207" not in await desk.ask(store, "s", "What was my order number again?", limit=0)
    await desk.tell(store, "zh", datasets.load("zh").of("zh-shop-02")[0].turns)
    assert "ZB-2391" in await desk.ask(store, "zh", "我那个压力锅的订单号是几多？")


async def test_a_preference_under_a_session_id_is_told_to_the_wrong_person():
    preferences = InMemoryPreferenceStore()
    await preferences.set("tablet", "never offer", "wool")
    assert await preferences.all("tablet")
    assert not await preferences.all("phone")


def test_the_endpoint_wants_each_result_behind_its_call_and_each_call_with_a_result():
    assert cuts.endpoint([]) == cuts.endpoint([ASK, CALL, RESULT, RESULT, SAY]) == cuts.ACCEPTED
    assert cuts.endpoint([RESULT, SAY]) == cuts.endpoint([ASK, SAY, RESULT]) == cuts.REFUSED
    assert cuts.endpoint([ASK, CALL, SAY]) == cuts.endpoint([ASK, CALL]) == cuts.UNANSWERED


@pytest.mark.parametrize("language", LANGUAGES)
def test_some_naive_prompts_are_refused_and_no_window_is(language):
    dataset = datasets.load(language)
    naive = cuts.naive_prompts(dataset, 20)
    assert 0 < (naive.opens_with == "tool").mean() < 0.15
    for user, turn, first in naive.itertuples(index=False):
        turns = dataset.turns_of(user)[:turn]
        if turns[-1].role == "user":
            assert (cuts.endpoint(turns[-20:]) == cuts.REFUSED) == (first == "tool")
        assert cuts.endpoint(window(turns, 20)) == cuts.ACCEPTED


def test_a_call_is_counted_for_each_assistant_turn_and_pays_for_the_current_exchange():
    turns = [ASK, CALL, RESULT, SAY, ASK, SAY]
    assert list(bill.calls(turns)) == [(0, 1), (0, 3), (4, 5)]
    system = bill.prompt_tokens(bill.prompt_of([], 0, 0, 0))
    each = [bill.prompt_tokens(bill.prompt_of([turn], 0, 1, 0)) - system for turn in turns]
    exchange = 2 * each[0] + each[1] + each[2] + each[4]
    assert bill.conversation_tokens(turns, 0) == 3 * system + exchange
    assert bill.per_thousand(2_500, 4.0) == 10


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_wider_window_costs_more_and_far_more_than_was_said(language):
    dataset = datasets.load(language)
    turns = dataset.turns_of(dataset.users()[0])
    costs = [bill.conversation_tokens(turns, limit) for limit in (0, 5, 10, 20, 40)]
    assert costs == sorted(set(costs))
    assert costs[-1] > 5 * sum(bill.prompt_tokens(bill.prompt_of([turn], 0, 1, 0)) for turn in turns) / 3


@pytest.mark.parametrize("person", list(panel.QUESTIONS))
def test_the_panels_model_answers_exactly_when_the_answer_is_sent(person):
    dataset = datasets.load(panel.QUESTIONS[person][0])
    facts = next(q.facts for q in dataset.questions if q.question_id == panel.QUESTIONS[person][1])
    for limit in range(0, 61, 4):
        asked = panel.ask_at_the_end(person, limit, 1.0)
        assert asked.covered == all(stands_in(fact, asked.reply) for fact in facts), limit
        assert asked.turns <= limit
        assert len(asked.messages) == asked.turns + 2
        assert bill.prompt_tokens(asked.messages) == asked.call < asked.conversation


def test_a_limit_of_exactly_the_distance_can_miss_a_tool_result():
    person = next(name for name in panel.QUESTIONS if "Ma Xiaoyan" in name)
    back = len(panel.ask_at_the_end(person, 0, 1).tokens) - panel.ask_at_the_end(person, 0, 1).gold[-1]
    assert not panel.ask_at_the_end(person, back, 1).covered
    assert panel.ask_at_the_end(person, back + 1, 1).covered


@pytest.mark.parametrize("limit", [0, 1, 2, 7, 30, 60])
@pytest.mark.parametrize("person", list(panel.QUESTIONS))
def test_the_prompts_rows_add_up_to_its_tokens_and_fit_the_picture(person, limit):
    asked = panel.ask_at_the_end(person, limit, 1.0)
    rows = panel.prompt_rows(asked)
    assert sum(tokens for _, _, tokens, _ in rows) == asked.call
    assert len(rows) <= 13
    assert rows[-1][1] == asked.question


def test_the_panel_follows_its_controls():
    shown = panel.prompt_panel()
    before = shown.png, shown.text
    assert "not in the prompt" in shown.text
    shown.set(limit=55)
    assert shown.png != before[0]
    assert "RC-518" in shown.text
    price = shown.result.dollars
    shown.set(dollars_per_million=10)
    assert shown.result.dollars == pytest.approx(10 * price)
    shown.set(person=list(panel.QUESTIONS)[2], limit=0)
    assert "0 turns and the question" in shown.text
    assert shown.view.value.count("<img") == 1


@pytest.fixture(scope="module")
def measured():
    both = [datasets.load(language) for language in LANGUAGES]
    return tuple(pd.concat(map(count, both)) for count in (coverage.asked_back, coverage.repeated_codes))


def test_a_reference_is_covered_by_its_own_limit_and_not_by_a_smaller_one():
    turns = [ASK, SAY, ASK, CALL, RESULT, SAY]
    for place in range(1, len(turns)):
        limit = coverage.smallest_limit(turns, place)
        assert turns[place] in window(turns, limit)
        assert len(window(turns, limit - 1)) < len(turns) - place
    assert coverage.smallest_limit(turns, 4) == 3


def test_a_code_is_counted_back_to_where_it_was_last_said():
    said = [ChatTurn("user", "BX-2207, please"), SAY, ChatTurn("user", "BX-2207!"), ChatTurn("assistant", "BX-2207.")]
    session = datasets.Session("u-s1", "u", datasets.FIRST_DAY, "…", tuple(said))
    assert list(coverage.repeated_codes(datasets.Dataset("en", (session,), ())).turns_back) == [1]


def test_coverage_rises_to_everything_and_its_interval_holds_the_share(measured):
    for references in measured:
        curve = coverage.coverage(references, resamples=200)
        assert curve.share.is_monotonic_increasing
        assert curve.share.iloc[-1] == 1
        assert ((curve.low <= curve.share) & (curve.share <= curve.high)).all()


def test_twenty_turns_miss_most_back_references_and_cover_most_repeated_codes(measured):
    table = coverage.shares(*measured)
    assert (table.loc[["back-references, en", "back-references, zh"], "to (%)"] < 50).all()
    assert table.loc["codes the assistant repeats", "from (%)"] > 50
    sentence = coverage.coverage_sentence(table)
    assert f"{table['covered (%)'].iloc[0]} %" in sentence


def test_every_answerable_question_is_measured_once(measured):
    answerable = sum(q.kind != "unanswerable" for name in LANGUAGES for q in datasets.load(name).questions)
    assert len(measured[0]) == answerable


def test_the_answer_weighs_a_small_part_of_the_window_that_covers_it(measured):
    tokens = pd.concat([coverage.window_tokens(datasets.load(name)) for name in LANGUAGES], axis=1)
    assert (tokens.diff().dropna() >= 0).all(axis=None)
    assert measured[0].tokens.median() < tokens.median(axis=1)[20] / 10
    assert coverage.price_sentence(measured[0], tokens).startswith("To cover 80 %")

"""Chapter 00: its checkers tell right from wrong, its agents forget and remember, its figures are true."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime
from itertools import product

import numpy as np
import pandas as pd
import pytest

from tests.lab.proof import assert_proved
from tri_memory.agent.chat import Chat
from tri_memory.agent.replies import NOT_FOUND
from tri_memory.contracts import ChatTurn, EpisodicRecord
from tri_memory.doctor import Check
from tri_memory.embedding import default_embedder
from tri_memory.lab import datasets
from tri_memory.lab.chapters.ch00 import asking, atlas, health, ladder, layers, measure, panel, placing, series, visits
from tri_memory.lab.exercises.kit import check
from tri_memory.lab.plots import png
from tri_memory.lab.sources import source_files
from tri_memory.session.memory import InMemorySessionStore
from tri_memory.session.tokens import estimate_tokens

GWEN = datasets.load("en").of("en-device-01")
PURCHASE, ALLERGY = "Which purchase order did I give you for the bearings?", "What am I allergic to?"


class Placed(dict):
    """A learner's dictionary that `assert_proved` can use as a key."""

    __hash__ = object.__hash__  # type: ignore[assignment]


def right_places(**other: str) -> Placed:
    return Placed({letter: said.layer for letter, said in placing.SAID.items()} | other)


def test_exercise_00_1_is_proved():
    assert_proved(
        "00-1",
        right=[right_places(a="Preference", b=" SESSION ", c="episode")],
        wrong={
            right_places(a="session"): "ends tonight",
            right_places(c="preferences"): "fill every prompt",
            right_places(b="episodes"): "two turns later",
            right_places(f="cache"): "none of the three layers",
            Placed({"a": "preferences"}): "Still open",
        },
    )


def test_every_confusion_of_two_layers_has_an_explanation_of_its_own():
    messages = []
    for letter, said in placing.SAID.items():
        for layer in placing.LAYERS:
            if layer != said.layer:
                verdict = check("00-1", right_places(**{letter: layer}))
                assert not verdict.passed
                messages.append(verdict.message)
    assert len(set(messages)) == 12


def fill_by_repeated_max(question, memories, budget):
    rest, chosen, left = list(memories), [], budget - estimate_tokens(question)
    while rest:
        best = max(rest, key=lambda memory: memory.score)
        rest.remove(best)
        if estimate_tokens(best.summary) <= left:
            chosen, left = [*chosen, best], left - estimate_tokens(best.summary)
    return chosen


def _fill(question, memories, budget, *, count=estimate_tokens, key=lambda m: -m.score, stop=False):
    chosen, left = [], budget - count(question)
    for memory in sorted(memories, key=key):
        if count(memory.summary) <= left:
            chosen.append(memory)
            left -= count(memory.summary)
        elif stop:
            break
    return chosen


def fill_without_paying_for_the_question(question, memories, budget):
    return _fill("", memories, budget)


def fill_until_the_first_misfit(question, memories, budget):
    return _fill(question, memories, budget, stop=True)


def fill_as_they_come(question, memories, budget):
    return _fill(question, memories, budget, key=lambda memory: 0)


def fill_counting_words(question, memories, budget):
    return _fill(question, memories, budget, count=lambda text: len(text.split()))


def fill_sorting_in_place(question, memories, budget):
    memories.sort(key=lambda memory: -memory.score)
    return _fill(question, memories, budget)


def fill_with_texts(question, memories, budget):
    return [memory.summary for memory in _fill(question, memories, budget)]


def fill_worst_first(question, memories, budget):
    return _fill(question, memories, budget)[::-1]


def test_exercise_00_2_is_proved():
    assert_proved(
        "00-2",
        right=[fill_by_repeated_max],
        wrong={
            fill_without_paying_for_the_question: "not paid for",
            fill_until_the_first_misfit: "stops at the first",
            fill_as_they_come: "another order than best first",
            fill_counting_words: "counts words",
            fill_sorting_in_place: "changes the list",
            fill_with_texts: "the memories themselves",
            fill_worst_first: "not best first",
        },
    )


def test_counting_quarters_of_characters_and_leaving_out_an_exact_fit_are_told_apart():
    assert "characters / 4" in check("00-2", lambda q, m, b: _fill(q, m, b, count=lambda t: len(t) // 4)).message
    assert "fits exactly" in check("00-2", lambda q, m, b: _fill(q, m, b - 1)).message


async def put_one_by_one(chat, notes):
    for day, text in notes:
        vector = np.asarray(chat.embedder.encode([text]))[0] * 3.0
        await chat.episodes.remember(EpisodicRecord(chat.user_id, day.isoformat(), text, vector, day))


async def put_by_talking(chat, notes):
    """Through the front door: a session for each note, on its day."""
    chat.summarizer = lambda turns: turns[0].content
    for day, text in notes:
        chat.clock.set(day)
        await chat.say(text)
        await chat.new()


async def put_into_the_session(chat, notes):
    for _, text in notes:
        await chat.sessions.append(chat.key, ChatTurn("user", text))


async def put_into_preferences(chat, notes):
    for day, text in notes:
        await chat.preferences.set(chat.user_id, f"{day:%Y-%m-%d}", text)


async def put_under_one_session_id(chat, notes):
    for day, text in notes:
        await chat.episodes.remember(EpisodicRecord(chat.user_id, "paper", text, chat.embedder.encode([text])[0], day))


async def put_for_gwen(chat, notes):
    for n, (day, text) in enumerate(notes):
        await chat.episodes.remember(EpisodicRecord("gwen", f"p{n}", text, chat.embedder.encode([text])[0], day))


async def put_with_todays_date(chat, notes):
    for n, (_, text) in enumerate(notes):
        vector = chat.embedder.encode([text])[0]
        await chat.episodes.remember(EpisodicRecord(chat.user_id, f"p{n}", text, vector, datetime.now(UTC)))


async def put_with_another_embedder(chat, notes):
    for n, (day, text) in enumerate(notes):
        vector = default_embedder().encode([text])[0]
        await chat.episodes.remember(EpisodicRecord(chat.user_id, f"p{n}", text, vector, day))


async def put_all_in_one(chat, notes):
    text = " ".join(text for _, text in notes)
    vector = chat.embedder.encode([text])[0]
    await chat.episodes.remember(EpisodicRecord(chat.user_id, "paper", text, vector, notes[0][0]))


async def put_with_the_vector_of_the_last(chat, notes):
    vector = chat.embedder.encode([notes[-1][1]])[0]
    for n, (day, text) in enumerate(notes):
        await chat.episodes.remember(EpisodicRecord(chat.user_id, f"p{n}", text, vector, day))


async def put_into_the_model(chat, notes):
    async def knows_everything(messages):
        return " ".join(f"{day:%Y-%m-%d} {text}" for day, text in notes)

    chat.model = knows_everything


async def put_nowhere(chat, notes):
    return


def put_without_async(chat, notes):
    return notes


def test_exercise_00_3_is_proved():
    assert_proved(
        "00-3",
        right=[put_one_by_one, put_by_talking],
        wrong={
            put_into_the_session: "that one is over",
            put_into_preferences: "stand in every prompt",
            put_under_one_session_id: "replace each other",
            put_for_gwen: "are remembered for",
            put_with_todays_date: "the day is not",
            put_with_another_embedder: "two embedders",
            put_all_in_one: "One episode for each",
            put_with_the_vector_of_the_last: "was not recalled",
            put_into_the_model: "changes the chat itself",
            put_nowhere: "Nothing is stored",
            put_without_async: "async def",
        },
    )


@pytest.mark.parametrize("answer", [7, "preferences", [], lambda: 1, object()])
@pytest.mark.parametrize("exercise", ["00-1", "00-2", "00-3"])
def test_odd_answers_get_a_sentence_and_no_traceback(exercise, answer):
    verdict = check(exercise, answer)
    assert not verdict.passed
    assert "Traceback" not in verdict.message


async def test_without_a_layer_the_agent_forgets_what_was_said_two_messages_ago():
    chat = Chat("gwen")
    await visits.replay(chat, GWEN[1])
    for question in (PURCHASE, ALLERGY):
        assert await chat.say(question) == NOT_FOUND["en"]


async def test_each_layer_cures_one_kind_of_forgetting_and_leaves_the_next():
    stores = await layers.remembered(GWEN[:4])
    same_visit = Chat("gwen", sessions=InMemorySessionStore())
    await visits.replay(same_visit, GWEN[1])
    assert "HM-5519" in await same_visit.say(PURCHASE)
    await same_visit.new()
    assert await same_visit.say(ALLERGY) == NOT_FOUND["en"]

    two = stores.agent("en-device-01", ("sessions", "preferences"))
    assert "latex: allergic" in await two.say(ALLERGY)
    assert await two.say(PURCHASE) == NOT_FOUND["en"]

    three = stores.agent("en-device-01")
    answer = await three.say(PURCHASE)
    assert "HM-5519" in answer
    assert "2026-01-27" in answer
    assert len(answer.splitlines()) == 2  # "a second quote that nobody needs"
    cost = {section.name: section.tokens for section in three.last_sections}
    assert cost["episodes"] > sum(cost.values()) / 2  # "most of what this prompt costs"


async def test_a_replay_stores_the_very_turns_of_the_visit_and_gives_the_model_back():
    stores = layers.Stores.empty(visits.by_hand(GWEN))
    chat = stores.agent("en-device-01")
    model = chat.model
    await visits.replay(chat, GWEN[1])
    history = await chat.history()
    said = list(GWEN[1].turns)
    assert [(t.role, t.content) for t in history[: len(said)]] == [(t.role, t.content) for t in said]
    assert len(history) - len(said) <= 1  # a nod, where the visit ends with the user's words
    assert chat.model is model
    assert chat.clock() == GWEN[1].started_at


def test_exchanges_lose_no_turn():
    for language in datasets.LANGUAGES:
        for session in datasets.load(language).sessions:
            pairs = visits.exchanges(session.turns)
            assert [turn for said, answers in pairs for turn in (said, *answers)] == list(session.turns)


def test_a_layer_that_there_is_not_is_refused_by_name():
    with pytest.raises(ValueError, match="'window'"):
        layers.Stores.empty(len).agent("gwen", ("window",))  # type: ignore[arg-type]


async def test_the_card_shows_answer_prompt_and_prices_and_marks_what_was_quoted():
    chat = Chat("gwen", sessions=InMemorySessionStore())
    await visits.replay(chat, GWEN[1])
    card = await asking.ask(chat, PURCHASE, "in other words")
    html = card._repr_html_()
    assert "(in other words)" in html
    assert re.search(r"<mark[^>]*>Ugh\. Go on then, both\.", html)
    total = sum(section.tokens for section in chat.last_sections)
    assert f"{total} tokens" in html
    assert f"{total} tokens" in repr(card)
    assert "[window, " in repr(card)


async def test_a_lone_question_is_not_called_a_window():
    card = await asking.ask(Chat("gwen"), ALLERGY)
    assert "question, " in card._repr_html_()
    assert "window" not in repr(card)


async def test_markup_in_a_conversation_stays_text():
    chat = Chat("gwen", sessions=InMemorySessionStore())
    await chat.say("My code is <script>alert(1)</script> BX-77.")
    html = (await asking.ask(chat, "What is my code?"))._repr_html_()
    assert "<script>" not in html
    assert "<mark" in html


async def test_other_words_and_the_other_language_find_the_visit_that_is_meant():
    chat = (await layers.remembered(GWEN[:4])).agent("gwen")
    chat.user_id = "en-device-01"
    table = (await asking.nearest(chat, ["rubber gloves", "橡胶手套", "Is anything leaking?", "warranty"])).data
    assert list(table.idxmax(axis=1)) == ["27 Jan", "27 Jan", "12 Mar", "21 Apr"]
    notes = " ".join(visit.summary for visit in GWEN).lower()
    assert not any(word in notes for word in ("rubber", "leak", "warranty"))


def test_the_health_table_shows_what_failed_and_folds_what_is_well():
    lines = [
        Check("python", "OK", "3.11.9 on linux"),
        Check("numpy", "OK", "2.0.1"),
        Check("pandas", "FAIL", "not installed: pip install pandas"),
        Check("torch", "optional", "not installed: pip install torch"),
    ]
    card = health.table(lines)
    shown, folded_away = card.body.split("<details", 1)
    assert card.title == "1 of 4 checks failed"
    assert all(name in shown for name in ("python", "pandas", "torch"))
    assert "numpy" in folded_away
    assert all(line.name in card.plain for line in lines)


def test_every_notebook_stands_in_the_series_under_its_name_and_is_linked():
    files = [chapter.file for chapter in series.CHAPTERS]
    assert [name[:2] for name in files] == [f"{i:02}" for i in range(17)]
    html = series.table()._repr_html_()
    for source in source_files():
        assert source.stem in files
        assert f'href="{source.stem}.ipynb"' in html


def test_the_map_is_drawn_for_any_number_of_visits():
    for count in (2, 5):
        assert png(atlas.draw(GWEN[:count], ["…"] * (count - 1), (0, "latex")), 50)


OFF = {"sessions": 0, "preferences": 0, "episodes": 0}


@pytest.mark.parametrize("question", list(panel.QUESTIONS))
def test_the_panel_works_at_every_corner(question):
    for switches in product((1, 0), repeat=3):
        sessions, preferences, episodes = switches
        outcome = panel.switch(question, sessions, preferences, episodes)
        names = {section.name for section in outcome.given}
        assert ("preferences" in names, "episodes" in names) == (bool(preferences), bool(episodes))
        missing = {section.name for section in outcome.withheld}
        assert missing == {n for n, s in zip(("window", "preferences", "episodes"), switches, strict=True) if not s}
        assert f"({outcome.tokens} tokens)" in panel.say(outcome)
        assert png(panel.draw(outcome), 20)
    assert outcome.refused  # the last corner is all off


@pytest.mark.parametrize("question", [name for name, asked in panel.QUESTIONS.items() if asked.fact])
def test_with_all_layers_on_each_question_that_has_an_answer_gets_it(question):
    outcome = panel.switch(question, 1, 1, 1)
    assert panel.verdict(outcome).startswith("Remembered")
    nothing = panel.switch(question, **OFF)
    assert panel.verdict(nothing).startswith("Forgotten. A layer that is off has it")
    assert nothing.tokens < outcome.tokens


def test_each_layer_is_the_only_cure_for_some_question_or_the_cheapest():
    cheapest = {}
    for question, asked in panel.QUESTIONS.items():
        if asked.fact:
            found = {name: panel.switch(question, **OFF | {name: 1}) for name in OFF}
            cures = {name: o.tokens for name, o in found.items() if panel.verdict(o).startswith("Remembered")}
            cheapest[question] = min(cures, key=cures.__getitem__)
    assert set(cheapest.values()) == set(OFF)


def test_the_question_that_nobody_answered_is_refused_without_memory_and_answered_with_it():
    question = next(name for name, asked in panel.QUESTIONS.items() if not asked.fact)
    assert panel.verdict(panel.switch(question, 0, 0, 0)).startswith("Rightly")
    assert panel.verdict(panel.switch(question, 1, 1, 1)).startswith("A false memory")


def test_the_panel_follows_its_switches():
    shown = panel.layer_panel()
    assert "Forgotten. A layer that is off has it." in shown.text
    assert shown.view.value.count("<img") == 1
    before = shown.png, shown.text
    shown.set(episodes=1)
    assert shown.png != before[0]
    assert "Remembered, from episodes." in shown.text


@pytest.fixture(scope="module")
def asked():
    tables = [
        asyncio.run(measure.ask_everybody(data, data.users()[:1] + data.users()[4:5]))
        for data in map(datasets.load, datasets.LANGUAGES)
    ]
    return pd.concat(tables)


def test_a_window_answers_in_the_visit_and_nothing_in_a_new_one(asked):
    found = measure.shares(asked)
    same, new = (found.loc[moment] for moment in measure.MOMENTS)
    assert same.in_prompt["+ window"] > 75
    assert same.answered["no memory"] == new.answered["+ window"] == 0
    assert new.in_prompt["+ episodes"] > 40
    assert new.answered["+ episodes"] > 15
    assert new.tokens.is_monotonic_increasing


def test_no_answer_has_what_its_prompt_has_not(asked):
    assert not (asked.answered & ~asked.in_prompt).any()
    assert not (asked.answered & asked.refused).any()


def test_every_question_is_asked_at_each_moment_with_each_memory(asked):
    counts = asked[asked.kind != "unanswerable"].groupby(["question", "moment"]).memory.nunique()
    assert (counts == len(measure.LADDER)).all()
    assert set(asked[asked.kind == "unanswerable"].moment) == {measure.MOMENTS[1]}


def test_the_interval_holds_the_share_and_the_sentences_hold_the_figures(asked):
    found = measure.shares(asked)
    assert ((found.low <= found.answered) & (found.answered <= found.high)).all()
    new = found.loc[measure.MOMENTS[1]]
    assert f"{new.answered['+ episodes']:.0f} %" in ladder.facts(asked)
    assert f"{measure.made_up(asked)['+ episodes']:.0f} %" in ladder.where_it_stops(asked)
    assert measure.made_up(asked)["no memory"] == 0
    assert png(ladder.draw(asked), 50)


def test_the_rules_notice_the_allergies_of_the_two_who_stand_in_the_notebook():
    assert "latex: allergic" in measure.noticed(datasets.load("en"), ["en-device-01"])
    assert "芝麻: 过敏" in measure.noticed(datasets.load("zh"), ["zh-shop-01"])

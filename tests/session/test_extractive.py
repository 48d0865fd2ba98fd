"""The offline summariser: short enough whatever comes, to the letter, the same every time, and it keeps what counts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tri_memory.contracts import ROLES, ChatTurn
from tri_memory.embedding import HashingEmbedder
from tri_memory.lab import datasets
from tri_memory.session.clauses import clauses, language_of, size, trim
from tri_memory.session.compression import CountPolicy
from tri_memory.session.cues import signs, values
from tri_memory.session.evidence import Candidate, candidates
from tri_memory.session.extractive import ExtractiveSummarizer, choose, replaced
from tri_memory.session.memory import InMemorySessionStore
from tri_memory.summary import PREFIXES, summary_turn

summarize = ExtractiveSummarizer(HashingEmbedder())
meaning = ExtractiveSummarizer()


def talk(*texts: str) -> list[ChatTurn]:
    """User and assistant take turns, the user first."""
    return [ChatTurn("assistant" if i % 2 else "user", text) for i, text in enumerate(texts)]


def short_enough(text: str, characters: int = 150, words: int = 100) -> bool:
    limit = characters if language_of(text) == "zh" else 17 * words
    return len(text) <= limit and len(text.split()) <= words


texts = st.text(st.characters(codec="utf-8"), max_size=200) | st.sampled_from(
    [
        "I'm allergic to latex, so please no gloves. My number is KW-448120.",
        "我对芝麻过敏，以后别寄那个。订单号ZB-2207，5月6号到。",
        "好的，谢谢",
        "😂😂",
        "混合 mixed 文本 with 3 kg and 5月6号",
    ]
)
turns = st.builds(ChatTurn, st.sampled_from(sorted(ROLES)), texts)


@settings(deadline=None, max_examples=150)
@given(st.lists(turns, max_size=30), st.integers(1, 150), st.integers(1, 100))
@example([ChatTurn("user", "a" * 3_000)], 150, 100)
@example([ChatTurn("user", "电" * 3_000)], 150, 100)
@example([ChatTurn("user", "one two three")], 1, 1)
def test_the_limits_hold_whatever_is_said(span, characters, words):
    text = ExtractiveSummarizer(HashingEmbedder(), characters, words)(span)
    said = "\n".join(turn.content for turn in span)
    if language_of(said) == "zh":
        assert len(text) <= characters
    else:
        assert len(text.split()) <= words
        assert len(text) <= 17 * words


@settings(deadline=None, max_examples=50)
@given(st.lists(turns, max_size=20))
def test_the_same_turns_give_the_same_summary(span):
    assert summarize(span) == ExtractiveSummarizer(HashingEmbedder())(list(span))


@pytest.mark.parametrize("language", datasets.LANGUAGES)
def test_every_clause_of_a_summary_was_said_to_the_letter_and_in_this_order(language):
    dataset = datasets.load(language)
    for user in dataset.users():
        span = dataset.turns_of(user)[:21]
        said = "\n".join(turn.content for turn in span)
        text = summarize(span)
        assert short_enough(text)
        at = 0
        for clause in clauses(text, language):
            at = said.find(clause.text, at)
            assert at >= 0, clause.text


@pytest.mark.parametrize(
    ("unit", "language"),
    [
        ("The code is AB-1234. ", "en"),
        ("x", "en"),
        ("!", "en"),
        ("so ", "en"),
        ("好的，", "zh"),
        ("一", "zh"),
        ("｜", "zh"),
    ],
)
def test_a_turn_of_5_mb_is_no_trouble(unit, language):
    long = unit * (5_000_000 // len(unit))
    text = summarize([*talk("I'm allergic to wool. 我对羊毛过敏。"), ChatTurn("tool", long, "log")])
    assert short_enough(text, words=150)
    assert "wool" in text or "羊毛" in text


def test_of_a_long_turn_the_beginning_and_the_end_are_read():
    text = summarize(talk("The code is AB-1234. " + "Nothing happens here. " * 10_000 + "The other code is CD-5678."))
    assert "AB-1234" in text
    assert "CD-5678" in text


def test_a_sentence_without_an_end_is_not_read_again_for_each_of_its_clauses():
    found = clauses("，".join(f"第{number}条" for number in range(1_000)), "zh")
    assert len(found) == 1_000
    assert sum(len(clause.context) for clause in found) < 10_000


def test_nul_and_runs_of_spaces_become_one_space():
    assert summarize(talk("My  order\0 is" + " " * 5_000 + "BX-2207.")) == "My order is BX-2207"


@pytest.mark.parametrize("blank", [[], [""], ["", "  \n"], ["\u200b "]])
def test_blank_turns_give_a_blank_summary(blank):
    assert not summarize(talk(*blank)).strip("\u200b ")


def test_what_is_only_talk_still_gives_a_text_so_that_the_fold_succeeds():
    assert summarize(talk("Hi!", "Hello!", "Thanks", "😂"))
    assert summarize(talk("😂", "👍"))


async def test_a_store_folds_with_it_again_and_again_and_the_allergy_stays():
    store = InMemorySessionStore(policy=CountPolicy(8, 4), summarizer=summarize)
    await store.append("s", ChatTurn("user", "I'm allergic to latex. My order is BX-2207."))
    for number in range(60):
        await store.append(
            "s", ChatTurn("assistant" if number % 2 == 0 else "user", f"We talked about trees, part {number}.")
        )
    history = await store.get_history("s")
    assert {record.outcome for record in store.trace} == {"folded"}
    assert len(store.trace) > 10
    assert "latex" in history[0].content
    assert "BX-2207" in history[0].content


@pytest.mark.parametrize("prefix", PREFIXES.values())
def test_the_prefix_of_the_old_summary_is_not_condensed(prefix):
    text = summarize([ChatTurn("system", prefix + "order AB-1234, 订单CD-5678"), *talk("Fine.")])
    assert prefix.strip() not in text
    assert "AB-1234" in text


def test_an_old_summary_longer_than_the_room_is_condensed_to_its_facts():
    filler = "; ".join(
        f"they went on about the weather of the {word} day" for word in "first second third".split() * 20
    )
    text = summarize([summary_turn(f"{filler}; serial KW-448120; {filler}"), *talk("New address: 8 Saltmarsh Court.")])
    assert short_enough(text)
    assert "KW-448120" in text
    assert "8 Saltmarsh Court" in text


@pytest.mark.parametrize(
    ("span", "fact", "noise"),
    [
        (talk("Hi, lovely weather today! I can't eat nuts, please remember.", "Noted."), "can't eat nuts", "weather"),
        (talk("Which code? I have it here: TR-4471.", "Thank you so much, that helps."), "TR-4471", "so much"),
        (talk("今天天气真不错啊！我对花生过敏，别放。", "记下了。"), "对花生过敏", "天气"),
        (talk("哈哈哈，笑死我了。以后发短信给我，别打电话。", "好的，改好了。"), "别打电话", "笑死"),
    ],
)
def test_with_room_for_one_clause_the_fact_is_taken_and_the_talk_left(span, fact, noise):
    text = ExtractiveSummarizer(HashingEmbedder(), max_characters=5, max_words=4)(span)
    assert fact in text
    assert noise not in text


@pytest.mark.parametrize(
    ("old", "new", "characters", "words"),
    [
        ("My address is 14 Quarry Lane.", "We moved, my address is now 8 Saltmarsh Court.", 150, 9),
        ("你们只能周一送货。", "送货改到周三。", 8, 100),
    ],
)
def test_where_only_one_fits_the_newer_value_beats_the_older(old, new, characters, words):
    summarizer = ExtractiveSummarizer(max_characters=characters, max_words=words)
    text = summarizer(talk(old, "Noted. 好的。", new, "Changed. 改好了。"))
    assert ("Saltmarsh" in text) or ("周三" in text)
    assert "Quarry" not in text
    assert "周一" not in text


def alike(n: int, cosine: float) -> np.ndarray:
    return np.full((n, n), cosine, np.float32)


@pytest.mark.parametrize(
    ("newer", "cosine", "gone"),
    [
        ("The exam is moved to 23 June.", 0.5, True),
        ("The exam is moved to 23 June.", 0.4, False),  # about something else
        ("The exam is on 23 June.", 0.5, False),  # no word of change
        ("The exam is on 23 June.", 0.9, True),  # the same words, another date
        ("The exam is on 9 June.", 0.9, False),  # the same date again
        ("The exam is moved to the hall.", 0.5, False),  # no value of the same kind
    ],
)
def test_a_value_is_replaced_by_a_later_one_of_its_kind_about_the_same_thing(newer, cosine, gone):
    found = candidates(talk("The exam is on 9 June.", "Good.", newer, "Good."), "en")
    dated = [candidate for candidate in found if "exam" in candidate.text]
    assert replaced(dated, alike(2, cosine), "en") == ([0] if gone else [])


def test_a_replaced_value_goes_behind_what_is_as_likely():
    def candidate(place: int, text: str, *own: str) -> Candidate:
        return Candidate(text, place, 0, place, len(text.split()), frozenset(own), frozenset({"user", "date"}))

    found = [
        candidate(0, "exam on 9 June", "date"),
        candidate(1, "two bikes for Ann", "measure"),
        candidate(2, "exam moved to 23 June", "date", "change"),
    ]
    as_far_from_each_other = np.linalg.cholesky(alike(3, 0.5) + 0.5 * np.eye(3))
    chosen = [candidate.text for candidate in choose(found, as_far_from_each_other, "en", budget=9)]
    assert chosen == ["two bikes for Ann", "exam moved to 23 June"]


def test_an_id_that_is_told_three_times_takes_room_once():
    text = summarize(
        [
            *talk("It's BX-2207.", "Let me see."),
            ChatTurn("tool", "BX-2207 | delivered 2026-01-05", "order_lookup"),
            *talk("Right, BX-2207 it is."),
        ]
    )
    assert text.count("BX-2207") == 1


def test_what_happens_later_to_a_known_id_is_no_repetition():
    text = summarize(talk("My order is BX-2207.", "Thank you.", "BX-2207 comes back to you on 6 June.", "Fine."))
    assert "6 June" in text


def test_the_same_words_with_another_number_are_no_repetition():
    text = meaning(talk("The pressure is 4.2 bar.", "Fine.", "The pressure is 3.6 bar.", "Fine."))
    assert "3.6 bar" in text


def test_a_tool_call_is_left_out_and_its_result_is_read():
    span = [ChatTurn("assistant", "lookup(CALL-111)", "lookup"), ChatTurn("tool", "RES-222 | in stock", "lookup")]
    text = summarize(span)
    assert "RES-222" in text
    assert "CALL-111" not in text


def test_the_language_is_that_of_most_of_the_text():
    assert language_of("订单号是 BX-2207") == "zh"
    assert language_of("My name is 林") == "en"
    assert language_of("") == "en"
    assert "；" in summarize(talk("我对芝麻过敏。", "好的。", "订单号ZB-2207。"))
    assert "; " in summarize(talk("I'm allergic to wool.", "Noted.", "My order is BX-2207."))


def test_chinese_characters_among_english_words_count_as_words():
    assert size("the shop 好人 a", "en") == 5
    assert size("x" * 33, "en") == 3
    assert size("好人 a", "zh") == 4


@pytest.mark.parametrize(
    ("said", "language", "kept"),
    [
        ("Oh, and by the way, I'm booked for 9 June, please", "en", "booked for 9 June"),
        ("Right. So, thank you!", "en", ""),
        ("No, thanks", "en", ""),
        ("no wool", "en", "no wool"),
        ("it's not urgent", "en", "it's not urgent"),
        ("那就30只吧", "zh", "30只"),
        ("对了，还有麻烦您放门口吧谢谢", "zh", "放门口"),
        ("好的好的", "zh", ""),
    ],
)
def test_fillers_go_and_the_words_between_stay(said, language, kept):
    assert trim(said, language) == kept


def test_sentences_are_cut_at_their_clauses_and_not_inside_numbers_and_titles():
    found = [clause.text for clause in clauses("Dr. Lee paid £4,150 on 5.6.2026, but the pump (PUMP-17) trips.", "en")]
    assert found == ["Dr. Lee paid £4,150 on 5.6.2026", "the pump", "PUMP-17", "trips"]
    found = [clause.text for clause in clauses("要哑光的，8寸平盘30只。「半亩（苏州）公司」｜QT-0093", "zh")]
    assert found == ["要哑光的", "8寸平盘30只", "「半亩（苏州）公司」", "QT-0093"]


@pytest.mark.parametrize(
    ("clause", "language", "shown", "missing"),
    [
        ("my serial is KW-448120", "en", {"id", "label"}, {"money"}),
        ("half past nine on 6 June", "en", {"clock", "date"}, {"id"}),
        ("never call before six", "en", {"wish", "contact", "order"}, {"money"}),
        ("a pack of 6 for £4.50", "en", {"money", "number"}, {"date"}),
        ("千万别放驿站", "zh", {"wish"}, {"money", "measure"}),
        ("再来一点", "zh", set(), {"clock", "measure"}),
        ("下午三点半到", "zh", {"clock"}, {"id"}),
        ("十二道题", "zh", {"measure"}, {"clock"}),
        ("搬到5栋了", "zh", {"change", "place"}, {"date"}),
    ],
)
def test_signs_are_seen_and_not_imagined(clause, language, shown, missing):
    found = signs(clause, language)
    assert shown <= found
    assert not missing & found


def test_values_are_compared_as_written():
    assert values("on 9 June", "en") != values("on 10 June", "en")
    assert values("The serial is KW-1", "en") <= values("kw-1", "en") | values("KW-1", "en")


def test_interjections_and_the_assistants_questions_are_no_candidates():
    found = [
        c.text
        for c in candidates(
            talk("Ugh!", "May I ask about allergies?", "Sensible. Latex, yes.", "No latex, then."), "en"
        )
    ]
    assert found == ["Latex", "No latex"] or found == ["Latex"]


def test_an_embedder_that_fails_fails_the_summary():
    class Broken(HashingEmbedder):
        def encode(self, texts):
            raise ConnectionError("no model")

    with pytest.raises(ConnectionError, match="no model"):
        ExtractiveSummarizer(Broken())(talk("My order is BX-2207."))


def test_an_embedder_that_knows_nothing_is_enough():
    class Blind(HashingEmbedder):
        def encode(self, texts):
            return np.zeros((len(texts), self.dimensions), np.float32)

    assert "BX-2207" in ExtractiveSummarizer(Blind())(talk("My order is BX-2207."))


@pytest.mark.parametrize("bad", [0, -1, 1.5, "150", True])
def test_a_limit_that_is_no_number_of_characters_or_words_is_refused(bad):
    with pytest.raises(ValueError, match="max_characters"):
        ExtractiveSummarizer(max_characters=bad)
    with pytest.raises(ValueError, match="max_words"):
        ExtractiveSummarizer(max_words=bad)

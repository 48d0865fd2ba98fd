import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tri_memory.embedding import default_embedder
from tri_memory.lab.datasets import load
from tri_memory.recall.conversation import FULL, PLAIN, ConversationIndex, Said, Weights
from tri_memory.recall.cosine import as_unit, top_k
from tri_memory.recall.lexical import LexicalIndex

MEANING_ONLY = Weights(meaning=1, speaker=0, length=0, asking=0, when=0)


def talk(*texts, session=0, speaker="Ann"):
    return [Said(speaker, text, session) for text in texts]


def zeros(said, d=3):
    return np.zeros((len(said), d))


def order(said, question, *, vectors=None, vector=None, weights=PLAIN, k=99):
    """Rows by words alone, unless vectors are given."""
    index = ConversationIndex(said, zeros(said) if vectors is None else vectors, weights)
    return [found.row for found in index.rank(question, [0, 0, 0] if vector is None else vector, k)]


def words_of(said, question):
    """{row: share of the words} for those above 0."""
    found = ConversationIndex(said, zeros(said), PLAIN).rank(question, [0, 0, 0], max(1, len(said)))
    return {each.row: each.words for each in found if each.words}


# against the formula written out


VOCABULARY = "tea milk salt harbour 红茶 牛奶".split()
turns = st.builds(
    Said,
    st.sampled_from(["Ann", "Bo", "小明"]),
    st.lists(st.sampled_from([*VOCABULARY, "yesterday", "?"]), max_size=5).map(" ".join),
    st.integers(0, 2),
)
numbers = st.integers(-3, 3).map(float)
vectors = st.lists(numbers, min_size=3, max_size=3)
conversations = st.lists(st.tuples(turns, vectors), min_size=1, max_size=14)
questions = st.lists(st.sampled_from([*VOCABULARY, "when", "Ann", "小明", "zebra"]), max_size=4).map(" ".join)


def near(said, one, other):
    """What turn `other` gives to turn `one`."""
    if said[one].session != said[other].session:
        return 0.0
    of_session = [row for row, each in enumerate(said) if each.session == said[one].session]
    return max(0.0, 1 - abs(of_session.index(one) - of_session.index(other)) / 4)


def minmax(scores):
    low, high = min(scores), max(scores)
    return [(score - low) / (high - low) if high - low > 1e-6 else 0.0 for score in scores]


def terms(text):
    """The words of this file are their own stems, and "when" is the only stop word."""
    return [word for word in text.lower().replace("?", " ").split() if word != "when"]


def reference(said, rows, question, vector):
    """The words, the meaning and the naming of each turn, slowly."""
    n = len(said)
    docs = [Counter(terms(f"{each.speaker} {each.text}")) for each in said]
    smooth = [
        {term: sum(near(said, i, j) * docs[j][term] for j in range(n)) for term in {*sum(docs, Counter())}}
        for i in range(n)
    ]
    lengths = [sum(each.values()) for each in smooth]
    bm = [0.0] * n
    for term in terms(question):
        df = sum(term in doc for doc in docs)
        if df:
            for i, counts in enumerate(smooth):
                norm = 1.2 * (0.25 + 0.75 * lengths[i] / (sum(lengths) / n))
                bm[i] += math.log(1 + (n - df + 0.5) / (df + 0.5)) * counts[term] * 2.2 / (counts[term] + norm)
    units = [as_unit(row, zero_ok=True).astype(float) for row in rows]
    sums = [sum(near(said, i, j) * units[j] for j in range(n)) for i in range(n)]
    sums = [np.where(np.abs(each) < 1e-6, 0, each) for each in sums]  # neighbours that cancel out
    cosines = [float(as_unit(each, zero_ok=True) @ as_unit(vector, zero_ok=True)) for each in sums]
    return minmax(bm), cosines, [0.3 * (each.speaker in question) for each in said]


@settings(deadline=None)
@given(conversations, questions, vectors)
def test_the_parts_are_those_of_the_formula_and_the_score_is_their_sum(conversation, question, vector):
    said, rows = zip(*conversation, strict=True)
    found = ConversationIndex(said, np.array(rows), PLAIN).rank(question, vector, len(said))
    if not found:
        assert not any(vector)
        assert not {*terms(question)} & {term for each in said for term in terms(f"{each.speaker} {each.text}")}
        return
    words, cosines, named = reference(said, rows, question, vector)
    by_row, low, spread = sorted(found), min(cosines), max(cosines) - min(cosines)
    assert [each.row for each in by_row] == list(range(len(said)))
    assert [each.words for each in by_row] == pytest.approx(words, abs=1e-6)
    assert [each.meaning * spread for each in by_row] == pytest.approx([(c - low) / 2 for c in cosines], abs=1e-6)
    assert [each.named for each in by_row] == pytest.approx(named)
    for each in found:
        assert each.score == pytest.approx(each.words + each.meaning + each.named + each.extras)


@settings(deadline=None)
@given(conversations, questions, vectors, st.integers(1, 16))
def test_the_best_come_first_equal_ones_by_row_and_k_only_cuts(conversation, question, vector, k):
    said, rows = zip(*conversation, strict=True)
    index = ConversationIndex(said, np.array(rows))
    found = index.rank(question, vector, 99)
    assert found == sorted(found, key=lambda each: (-each.score, each.row))
    assert index.rank(question, vector, k) == found[:k]


# smoothing


@pytest.mark.parametrize("angle", range(1, 90, 8))
def test_vectors_that_cancel_out_have_no_direction(angle):
    there = np.array([math.cos(angle), math.sin(angle)])
    said = [*talk(*["milk"] * 4), Said("Bo", "milk", 1)]
    rows = [there, -there, 0 * there, -there, there]  # 1 - 0.75 - 0.25 = 0 for the first, but for the rounding
    found = sorted(ConversationIndex(said, rows, MEANING_ONLY).rank("", there, 5))
    assert [each.meaning for each in found] == pytest.approx([0.5, 0, 0, 0, 1], abs=1e-5)


@settings(deadline=None)
@given(st.integers(1, 12).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n - 1))))
def test_a_word_spreads_the_same_to_both_sides_and_ends_at_the_fourth_turn(place):
    n, at = place
    texts = ["tea" if row == at else "milk" for row in range(n)]
    there, back = words_of(talk(*texts), "tea"), words_of(talk(*reversed(texts)), "tea")
    assert {n - 1 - row: share for row, share in back.items()} == pytest.approx(there)
    assert set(there) <= {row for row in range(n) if abs(row - at) < 4}


def test_the_kernel_is_a_triangle():
    said = talk(*["tea"] * 9)
    vectors = np.eye(9)
    found = ConversationIndex(said, vectors, MEANING_ONLY).rank("", np.eye(9)[4], 9)
    by_row = [each.meaning for each in sorted(found)]
    assert by_row[4] == 1
    assert by_row[1:4] == pytest.approx(by_row[7:4:-1])
    assert by_row[0] == by_row[8] == 0
    assert by_row[1] < by_row[2] < by_row[3] < 1


@settings(deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=14), st.data())
def test_what_is_said_in_one_session_is_not_heard_in_another(sessions, data):
    at = data.draw(st.integers(0, len(sessions) - 1))
    said = [Said("Ann", "tea" if row == at else "milk", session) for row, session in enumerate(sessions)]
    assert all(sessions[row] == sessions[at] for row in words_of(said, "tea"))


@settings(deadline=None)
@given(st.permutations([0] * 5 + [1] * 5))
def test_interleaved_sessions_have_the_neighbours_they_have_apart(sessions):
    texts = ["tea", "milk", "salt", "milk", "milk"]
    left = {0: iter(texts), 1: iter(texts[::-1])}
    mixed = [Said("Ann", next(left[session]), session) for session in sessions]
    apart = sorted(mixed, key=lambda each: each.session)
    shares = [words_of(mixed, "tea").get(row, 0) for row in np.argsort(sessions, kind="stable")]
    assert shares == pytest.approx([words_of(apart, "tea").get(row, 0) for row in range(10)])


def test_the_answer_is_found_by_the_word_of_the_question_before_it():
    said = talk("Lovely weather.", "Which harbour was it?", "Polperro.") + talk("Some tea?", "Please.", session=1)
    assert set(order(said, "harbour")[:3]) == {0, 1, 2}
    assert set(words_of(said, "harbour")) == {0, 1, 2}


def test_a_rare_word_stays_rare_though_its_neighbours_share_it():
    said = talk("tea", "milk", "milk", "salt") + talk("milk", "milk", session=1)
    index = ConversationIndex(said, zeros(said), PLAIN)
    idf = math.log(1 + (6 - 1 + 0.5) / 1.5)  # one turn of six has it, four are reached
    assert index._bm25([index._vocabulary["tea"]]).max() <= 2.2 * idf
    assert index._bm25([index._vocabulary["tea"]]).max() > 2.2 * math.log(1 + (6 - 4 + 0.5) / 4.5)


# the parts


def test_a_question_that_shares_no_word_ranks_by_meaning():
    said = [*talk("tea", session=0), *talk("milk", session=1), *talk("salt", session=2)]
    assert order(said, "zebra", vectors=np.eye(3), vector=[0.1, 0.3, 0.9]) == [2, 1, 0]


def test_a_zero_vector_ranks_by_words():
    said = [*talk("tea", session=0), *talk("milk", session=1), *talk("salt", session=2)]
    assert order(said, "salt", vectors=np.eye(3))[0] == 2


def test_where_neither_words_nor_meaning_say_anything_nothing_is_found():
    assert order(talk("tea", "milk"), "zebra") == []
    assert order(talk("what did you say of the tea", "什么时候喝茶"), "What did you say?") == []
    assert order(talk("what did you say of the tea", "什么时候喝茶"), "什么时候？") == []


def test_equal_vectors_are_equal_though_their_sums_are_rounded():
    said = talk(*["milk"] * 9)
    vectors = np.tile([0.1, 0.7, 0.3], (9, 1))
    found = ConversationIndex(said, vectors, PLAIN).rank("zebra", [0.3, 0.2, 0.9], 9)
    assert [(each.row, each.meaning) for each in found] == [(row, 0) for row in range(9)]


def test_equal_turns_tie_in_order_of_row_also_beyond_a_block():
    said = [Said("Ann", "tea" if row % 2 else "milk", row) for row in range(9_003)]
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((2, 77))[[row % 2 for row in range(9_003)]]
    found = ConversationIndex(said, vectors).rank("tea", rng.standard_normal(77), 4_501)
    assert [each.row for each in found] == list(range(1, 9_003, 2))
    assert len({each.score for each in found}) == 1


@pytest.mark.parametrize(
    ("speaker", "question", "named"),
    [
        ("Ann", "What did Ann buy?", True),
        ("Ann", "Ann's tea?", True),
        ("Ann", "What did Anna buy?", False),
        ("Ann", "the Ann什么时候来", True),
        ("will", "Will it rain?", False),
        ("小明", "昨天小明说了什么", True),
        ("Dr. {0} (x)", "ask Dr. {0} (x) again", True),
    ],
)
def test_the_speaker_is_named_where_the_name_stands_as_it_is_spelled(speaker, question, named):
    said = [Said(speaker, "tea", 0), Said("Bo", "tea", 1)]
    found = sorted(ConversationIndex(said, np.eye(2)).rank(question, [1, 0], 2))
    assert [each.named for each in found] == [0.3 * named, 0]


@pytest.mark.parametrize(
    ("question", "text", "extra"),
    [
        ("tea", "harbour", math.log(3) / 20),
        ("tea", "harbour harbour", math.log(4) / 20),
        ("tea", "harbour?", math.log(3) / 20 - 0.05),
        ("tea", "harbour? [picture: boats]", math.log(4) / 20 + (math.log(5) - math.log(4)) / 20 - 0.05),
        ("When was tea?", "harbour yesterday", math.log(4) / 20 + 0.1),
        ("What tea?", "harbour yesterday", math.log(4) / 20),
        ("tea 什么时候", "红茶，昨天", math.log(4) / 20 + 0.1),
        ("tea 哪天", "红茶？", math.log(3) / 20 - 0.05),
        ("tea when", "3月去的红茶", math.log(5) / 20),
    ],
)
def test_the_extras_are_length_asking_and_when(question, text, extra):
    found = ConversationIndex([Said("Ann", text, 0)], np.eye(1), FULL).rank(question, [1], 1)
    assert found[0].extras == pytest.approx(extra)
    assert ConversationIndex([Said("Ann", text, 0)], np.eye(1), PLAIN).rank(question, [1], 1)[0].extras == 0


def test_the_day_is_found_by_its_words_but_makes_no_turn_longer():
    said = [Said("Ann", "tea", 0, "8 May, 2023"), Said("Ann", "tea", 1, "9 June, 2023")]
    found = ConversationIndex(said, zeros(said)).rank("What was on 9 June?", [0, 0, 0], 2)
    assert found[0].row == 1
    assert found[0].extras == found[1].extras


@pytest.mark.parametrize(
    ("question", "best"),
    [("我的猫叫什么名字？", 0), ("在哪里吃的火锅", 1), ("When is the ferry?", 2), ("the returns", 3)],
)
def test_both_languages_are_found_in_one_conversation(question, best):
    texts = ["猫的名字是团子", "昨晚在城西吃了火锅", "the ferries leave at six", "I returned the boots"]
    assert order([Said("user", text, row) for row, text in enumerate(texts)], question)[0] == best


# the edges


def test_an_empty_conversation_finds_nothing():
    index = ConversationIndex([], np.empty((0, 3)))
    assert len(index) == 0
    assert index.rank("tea", [1, 0, 0], 5) == []


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("text", ["", " ", "the", "？！", "\0"])
def test_turns_without_a_word_and_a_conversation_of_one_raise_no_warning(text):
    said = [Said("the", text, 0)]
    assert [each.row for each in ConversationIndex(said, [[1, 0]]).rank("tea", [1, 1], 9)] == [0]
    assert ConversationIndex([], np.empty((0, 2))).rank("tea", [1, 1], 9) == []


@pytest.mark.parametrize("shape", [(2,), (1, 3), (3, 3), (2, 0), (2, 3, 1)])
def test_vectors_of_another_shape_are_refused_naming_both(shape):
    with pytest.raises(ValueError, match=r"vectors must have the shape \(2, d\), a row for each turn; got \("):
        ConversationIndex(talk("tea", "milk"), np.zeros(shape))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_vector_that_is_not_finite_is_refused(bad):
    with pytest.raises(ValueError, match=r"must be finite; got .* at position 1"):
        ConversationIndex(talk("tea"), [[0, bad, 0]])
    with pytest.raises(ValueError, match=r"must be finite; got .* at position 1"):
        ConversationIndex(talk("tea"), [[0, 1, 0]]).rank("tea", [0, bad, 0], 1)


def test_vectors_that_are_no_numbers_are_refused():
    with pytest.raises(ValueError, match="must be a sequence of numbers"):
        ConversationIndex(talk("tea"), [["a", "b"]])


def test_a_question_of_another_size_is_refused_also_where_nothing_is_stored():
    for said in ([], talk("tea")):
        with pytest.raises(ValueError, match="the embedding has 2 dimensions, but 3 are stored"):
            ConversationIndex(said, zeros(said)).rank("tea", [1, 0], 1)


@pytest.mark.parametrize("k", [0, -1, 1.0, True, None])
def test_a_k_below_1_or_not_whole_is_refused(k):
    with pytest.raises(ValueError, match="k must be a whole number of at least 1"):
        ConversationIndex(talk("tea"), np.eye(1)).rank("tea", [1], k)


@pytest.mark.parametrize("question", [None, b"tea", 5])
def test_a_question_that_is_no_text_is_refused(question):
    with pytest.raises(ValueError, match="question must be a string; got"):
        ConversationIndex(talk("tea"), np.eye(1)).rank(question, [1], 1)


def test_what_is_no_turn_is_refused_by_its_row():
    with pytest.raises(ValueError, match=r"said\[1\] must be a Said; got \('Ann', 'tea', 0\)"):
        ConversationIndex([*talk("tea"), ("Ann", "tea", 0)], np.eye(2))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (("", "tea", 0), "speaker must be a non-blank string"),
        ((None, "tea", 0), "speaker must be a non-blank string"),
        (("Ann", None, 0), "text must be a string; got None"),
        (("Ann", "tea", 0, 8), "day must be a string; got 8"),
    ],
)
def test_a_turn_of_other_things_than_text_is_refused_by_the_field(fields, message):
    with pytest.raises(ValueError, match=message):
        Said(*fields)


# on the kit's own conversations


@pytest.mark.parametrize("language", ["en", "zh"])
def test_it_finds_more_of_the_gold_turns_among_five_than_words_or_meaning_alone(language):
    dataset, hits = load(language), Counter()
    for user in dataset.users():
        placed = [(session, at) for session in dataset.of(user) for at in range(len(session.turns))]
        said = [
            Said(s.turns[at].role, s.turns[at].content, s.session_id, f"{s.started_at:%Y-%m-%d}") for s, at in placed
        ]
        texts = [f"{each.speaker}: {each.text}" for each in said]
        vectors = default_embedder().encode(texts)
        index, words = ConversationIndex(said, vectors), LexicalIndex(texts)
        asked = [each for each in dataset.questions if each.user_id == user and each.gold_turns]
        for each, vector in zip(asked, default_embedder().encode([q.question for q in asked]), strict=True):
            gold = {row for row, (s, at) in enumerate(placed) if (s.session_id, at) in each.gold_turns}
            found = {
                "both": {hit.row for hit in index.rank(each.question, vector, 5)},
                "words": {row for row, _ in words.rank(each.question, 5)},
                "meaning": {row for row, _ in top_k(vectors, vector, 5)},
            }
            hits.update(way for way, rows in found.items() if rows & gold)
    assert hits["both"] > hits["words"] > hits["meaning"] > 50

import math
import re
import threading
import tracemalloc
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tri_memory.recall.lexical import LexicalIndex, terms, tokens

# tokens


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("成语接龙", "成语 语接 接龙"),
        ("猫", "猫"),
        ("猫，狗。", "猫 狗"),
        ("３月１日　退货", "3 月 1 日 退货"),
        ("在iPhone上用微信", "在 iphon 上用 用微 微信"),
        ("トマト、ｶﾞｽ", "トマ マト ガス"),
        ("ラーメン", "ラー ーメ メン"),
        ("Returned returns RETURNING", "return return return"),
        ("ＡＢＣ ﬁne", "abc fine"),
        ("℡ ㎒", "tel mhz"),
        ("the dog’s well-known bowl", "the dog well known bowl"),
        ("BX-2207", "bx-2207 bx 2207"),
        ("ＢＸ－２２０７", "bx-2207 bx 2207"),
        ("bx2207 orders_88", "bx2207 bx 2207 orders_88 order 88"),
        ("LIFT-3B-0719号", "lift-3b-0719 lift 3 b 0719 号"),
        ("2026-03-01 v1.2.3", "2026-03-01 2026 03 01 v1.2.3 v 1 2 3"),
        ("1,299.50元 3.5kg 12%", "1299.50 元 3.5 kg 12"),
        ("1.2.3 and 10,00", "1.2.3 1 2 3 and 10 00"),
        ("747's", "747's 747 s"),
        ("", ""),
        (" \t\n\0\ud800 …!? 😀", ""),
    ],
)
def test_a_text_is_cut_into(text, wanted):
    assert tokens(text) == wanted.split()


@pytest.mark.parametrize("text", [None, 5, b"ok", ["ok"]])
def test_what_is_no_text_is_refused(text):
    with pytest.raises(ValueError, match="a text must be a string; got"):
        tokens(text)


@pytest.mark.parametrize("asked", ["BX-2207", "bx-2207", "BX2207", "bx 2207", "ＢＸ２２０７", "2207"])
def test_an_id_is_found_however_it_is_written(asked):
    index = LexicalIndex(["the pump", "Serial number BX-2207.", "Serial number BX-2208."])
    assert index.rank(asked, 3)[0][0] == 1


def test_the_id_itself_beats_a_text_with_its_parts():
    index = LexicalIndex(["form 2207 of the BX series", "pump BX-2207 was sold again"])
    assert [row for row, _ in index.rank("BX-2207", 2)] == [1, 0]


@pytest.mark.parametrize(("one", "other"), [("STRASSE", "straße"), ("\u0390", "\u03aa\u0301"), ("Café", "cafe\u0301")])
def test_two_spellings_of_the_same_letters_are_one_token(one, other):
    assert tokens(one) == tokens(other)
    assert len(tokens(one)) == 1


def test_words_of_a_megabyte_are_not_kept_when_the_text_is_gone():
    tracemalloc.start()
    try:
        for letter in "abcdefghij":
            tokens(letter * 1_000_000)
        assert tracemalloc.get_traced_memory()[0] < 1_000_000
    finally:
        tracemalloc.stop()


def test_a_word_of_a_megabyte_is_one_token():
    assert tokens("ing" * 400_000) == ["ing" * 400_000]


printable = st.text(st.characters(codec="utf-8"), max_size=40)
mixed = st.text("aB1-.,' 成语接龙猫Ａ１－\u3000ﬁé\u0301’_", max_size=30)


@given(printable | mixed)
def test_tokens_are_folded_already_have_no_blanks_and_are_never_empty(text):
    for token in tokens(text):
        assert token
        assert not any(sign.isspace() for sign in token)
        assert token == token.casefold() or not token.isascii()


@given(st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E) | st.just(" "), max_size=40))
def test_full_width_forms_give_the_same_tokens(text):
    wide = "".join("\u3000" if sign == " " else chr(ord(sign) + 0xFEE0) for sign in text)
    assert tokens(wide) == tokens(text)


@given(printable | mixed, printable | mixed)
def test_what_stands_on_two_lines_is_cut_as_each_line_is(one, two):
    assert tokens(f"{one}\n{two}") == tokens(one) + tokens(two)


@given(st.text(st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF), min_size=1, max_size=12))
def test_any_part_of_a_chinese_run_that_is_two_long_is_a_token(run):
    assert tokens(run) == ([run] if len(run) == 1 else [run[i : i + 2] for i in range(len(run) - 1)])


def test_the_terms_of_a_text_are_its_tokens_and_the_characters_of_its_pairs():
    assert list(terms("我的猫 3 cats")) == ["我的", "的猫", "3", "cat", "我", "的", "猫"]
    assert list(terms("猫 ok")) == ["猫", "ok"]


# LexicalIndex


def test_a_phrase_inside_a_chinese_sentence_is_found():  # public fault 34
    assert [row for row, _ in LexicalIndex(["我们吃饭吧", "今天玩成语接龙游戏"]).rank("成语接龙", 5)] == [1]


@pytest.mark.parametrize("query", ["猫", "猫呢？", "哪只猫"])
def test_one_character_is_found_inside_a_sentence_where_it_is_in_no_pair_of_the_query(query):
    assert [row for row, _ in LexicalIndex(["他在吃饭", "我的猫很胖", "下雨了"]).rank(query, 5)] == [1]


def test_a_pair_in_one_piece_beats_its_two_characters_apart():
    assert [row for row, _ in LexicalIndex(["狗吃大肉", "肉喂大狗"]).rank("大狗", 5)] == [1, 0]


def test_another_form_of_an_english_word_is_found():
    assert [row for row, _ in LexicalIndex(["He was painting.", "She was sleeping."]).rank("painted", 5)] == [0]


@pytest.mark.parametrize("query", ["", "  ", "？！", "zebra", "斑点"])
def test_a_query_that_shares_nothing_finds_nothing(query):
    assert LexicalIndex(["a horse", "一匹马"]).rank(query, 3) == []


@pytest.mark.parametrize("texts", [[], [""], ["", " \0", "!"]])
def test_where_there_are_no_words_nothing_is_found(texts):
    index = LexicalIndex(texts)
    assert len(index) == len(texts)
    assert index.rank("anything", 3) == []


def test_a_blank_text_keeps_its_row():
    assert [row for row, _ in LexicalIndex(["", "tea", "", "tea time"]).rank("tea", 5)] == [1, 3]


def test_equal_scores_come_in_order_of_row_also_at_the_kth_place():
    texts = ["red tea", "tea", "blue"] * 400
    tea = [row for row in range(1_200) if row % 3 == 1]
    for k in (1, 7, 399, 400):
        assert [row for row, _ in LexicalIndex(texts).rank("tea", k)] == tea[:k]


def test_the_rarer_word_counts_for_more_and_the_shorter_text_too():
    index = LexicalIndex(["tea and milk", "tea and salt", "tea", "tea and so on and so forth"])
    assert index.rank("salt tea", 1)[0][0] == 1
    assert [row for row, _ in index.rank("tea", 4)] == [2, 0, 1, 3]


@pytest.mark.parametrize("k", [0, -1, 1.0, True, None])
def test_a_k_below_1_or_not_whole_is_refused_also_where_nothing_would_be_found(k):
    with pytest.raises(ValueError, match="k must be a whole number of at least 1; got"):
        LexicalIndex([]).rank("", k)


@pytest.mark.parametrize(
    ("texts", "message"), [("tea", "single text 'tea'"), (["tea", None], r"texts\[1\] must be a string; got None")]
)
def test_what_is_no_list_of_texts_is_refused(texts, message):
    with pytest.raises(ValueError, match=message):
        LexicalIndex(texts)


def counted_terms(text):
    """The tokens, and in Chinese the single characters too."""
    return tokens(text) + [sign for run in re.findall("[一-鿿]{2,}", text) for sign in run]


def reference(texts, query, k1=1.5, b=0.75):
    """BM25 as Lucene has it, written out: {row: score}."""
    counted = [Counter(counted_terms(text)) for text in texts]
    average = sum(map(Counter.total, counted)) / len(texts)
    scores = Counter()
    for token in counted_terms(query):
        having = sum(token in counts for counts in counted)
        idf = math.log(1 + (len(texts) - having + 0.5) / (having + 0.5))
        for row, counts in enumerate(counted):
            if counts[token]:
                length = k1 * (1 - b + b * counts.total() / average)
                scores[row] += idf * counts[token] / (counts[token] + length)
    return scores


words = st.lists(st.sampled_from("tea milk salt 茶 牛奶 红茶 BX-22 BX-23 7".split()), max_size=6).map(" ".join)


@settings(deadline=None)
@given(st.lists(words, min_size=1, max_size=12), words, st.integers(1, 14))
def test_the_scores_are_those_of_the_formula_best_first_and_ties_by_row(texts, query, k):
    exact = reference(texts, query)
    found = LexicalIndex(texts).rank(query, k)
    assert len(found) == min(k, len(exact))
    assert found == sorted(found, key=lambda pair: (-pair[1], pair[0]))
    for row, score in found:
        assert score > 0
        assert score == pytest.approx(exact[row], rel=1e-5)
    if found:
        left_out = exact.keys() - {row for row, _ in found}
        assert all(exact[row] <= found[-1][1] * (1 + 1e-5) for row in left_out)


@settings(deadline=None)
@given(st.lists(words, min_size=1, max_size=12), words)
def test_a_smaller_k_gives_the_head_of_the_same_list(texts, query):
    index = LexicalIndex(texts)
    everything = index.rank(query, 20)
    assert [index.rank(query, k) for k in range(1, 13)] == [everything[:k] for k in range(1, 13)]


def test_threads_that_index_at_once_get_the_stems_that_one_would():
    texts = [f"painting{chr(97 + i % 26)}s relational{chr(97 + i // 26)} happiness" for i in range(300)]
    found: list[list[list[str]]] = []
    threads = [threading.Thread(target=lambda: found.append([tokens(text) for text in texts])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[tokens(text) for text in texts]] * 4

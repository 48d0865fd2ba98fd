import pytest
from hypothesis import given
from hypothesis import strategies as st

from tri_memory.agent.word_counts import WordCounts
from tri_memory.recall.lexical import LexicalIndex

WORD = st.sampled_from("boots green Leeds refund BX-2207 靴子 退货 我的猫 1,299.50 the returned".split())
TEXT = st.lists(WORD, max_size=8).map(" ".join)


@given(TEXT, st.lists(TEXT, max_size=12))
def test_it_ranks_as_the_index_does(query, texts):
    counts = WordCounts()
    counts.rank("warm up", texts)

    ours = counts.rank(query, texts)
    index = dict(LexicalIndex(texts).rank(query, max(1, len(texts))))

    assert dict(ours) == pytest.approx(index, rel=1e-4)
    scores = [score for _, score in ours]
    assert scores == sorted(scores, reverse=True)


def test_equal_texts_stand_in_order_of_their_rows():
    assert [row for row, _ in WordCounts().rank("boots", ["boots", "x", "boots"])] == [0, 2]


def test_what_is_kept_can_not_be_read_and_goes_on_request():
    counts = WordCounts()
    counts.rank("canary", ["the canary sings"])

    assert "canary" not in repr(vars(counts))
    counts.clear()
    assert len(counts) == 0


def test_no_more_than_the_last_texts_are_kept():
    counts = WordCounts(most=3)
    for i in range(10):
        assert counts.rank("boots", [f"boots {i}"]) != []

    assert len(counts) == 3

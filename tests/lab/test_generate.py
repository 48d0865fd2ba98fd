"""The generator gives the same from the same seed, everywhere, and what it gives is fit for the stores."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from tri_memory.lab.datasets import LANGUAGES
from tri_memory.lab.generate import episodes, turns


@pytest.mark.parametrize("language", LANGUAGES)
def test_turns_are_as_many_as_asked_and_alternate(language):
    made = list(turns(101, language=language))
    assert len(made) == 101
    assert [turn.role for turn in made[:3]] == ["user", "assistant", "user"]
    assert all(before.role != after.role for before, after in pairwise(made))
    assert not any("{" in turn.content for turn in made)


def test_the_language_is_the_one_asked_for():
    assert all(turn.content.isascii() for turn in turns(50, language="en"))
    assert all(any("\u4e00" <= x <= "\u9fff" for x in turn.content) for turn in turns(50, language="zh"))


def test_a_longer_run_begins_with_the_shorter_one_and_another_seed_differs():
    assert list(turns(40, seed=3))[:10] == list(turns(10, seed=3))
    assert list(turns(10, seed=3)) != list(turns(10, seed=4))
    longer, shorter = list(episodes(40, 3, 8, seed=3)), list(episodes(10, 3, 8, seed=3))
    assert longer[:10] == shorter
    assert all(np.array_equal(a.embedding, b.embedding) for a, b in zip(longer, shorter, strict=False))
    assert not np.array_equal(shorter[0].embedding, next(episodes(1, 3, 8, seed=4)).embedding)


def test_episodes_are_unit_vectors_shared_out_evenly_with_ids_and_times_that_differ():
    made = list(episodes(90, 4, 16))
    vectors = np.array([record.embedding for record in made])
    assert vectors.shape == (90, 16)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-6)
    assert Counter(record.user_id for record in made) == {"user-1": 23, "user-2": 23, "user-3": 22, "user-4": 22}
    assert len({record.session_id for record in made}) == 90
    assert all(before.created_at < after.created_at for before, after in pairwise(made))
    mine = [record.summary.isascii() for record in made if record.user_id == "user-2"]
    assert mine[:4] == [True, False, True, False]


PROGRAM = """
import hashlib
from tri_memory.lab.generate import episodes, turns
said = "".join(t.to_json() for language in ("en", "zh") for t in turns(50, 7, language))
said += "".join(r.summary + r.embedding.tobytes().hex() for r in episodes(20, 3, 8, 7))
print(hashlib.sha256(said.encode()).hexdigest())
"""


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_another_process_makes_the_same(hash_seed):
    said = "".join(turn.to_json() for language in ("en", "zh") for turn in turns(50, 7, language))
    said += "".join(r.summary + np.asarray(r.embedding).tobytes().hex() for r in episodes(20, 3, 8, 7))
    environment = os.environ | {"PYTHONHASHSEED": hash_seed}
    other = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
    assert other.stdout.strip() == hashlib.sha256(said.encode()).hexdigest()


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: turns(-1), "n must be"),
        (lambda: turns(2.5), "n must be"),
        (lambda: turns(1, language="fr"), "fr"),
        (lambda: turns(1, seed="x"), "seed must be"),
        (lambda: episodes(1, 0, 8), "users must be"),
        (lambda: episodes(1, 1, 0), "dimensions must be"),
    ],
)
def test_a_wrong_argument_is_refused_at_the_call(make, named):
    with pytest.raises(ValueError, match=named):
        make()


def test_none_is_none():
    assert list(turns(0)) == []
    assert list(episodes(0, 1, 1)) == []

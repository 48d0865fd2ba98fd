"""What makes a cell run anew: notebook cells as IPython runs them, with their sources in linecache."""

from __future__ import annotations

import functools
import linecache
import os
import shutil
import subprocess
import sys
import threading
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tri_memory
from tri_memory.lab import sweep_version
from tri_memory.lab.sweep_version import NotHashableError, code_version, digest

CELL = """
LIMIT = 3
def helper(x):
    return x + 1
def make(step):
    def score(k, seed, scale=2):
        return helper(k) * scale + step + LIMIT
    return score
score = make(10)
"""
_numbers = count()


@pytest.fixture(autouse=True)
def same_package(monkeypatch):
    """Nobody edits the package while these tests run."""
    monkeypatch.setattr(sweep_version, "package_digest", lambda folder: "as it is")


@pytest.fixture(params=["__main__", "notebook_of_this_test"])
def run(request, monkeypatch):
    """Run the source of a cell in one kernel's namespace, as a file of its own."""
    module = ModuleType(request.param)
    monkeypatch.setitem(sys.modules, request.param, module)
    space = vars(module)

    def run(source: str) -> dict[str, Any]:
        name = f"<cell {next(_numbers)}>"
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        exec(compile(source, name, "exec", dont_inherit=True), space)
        return space

    return run


def test_the_same_cell_run_again_or_with_other_comments_is_the_same_code(run):
    before = code_version(run(CELL)["score"])
    assert code_version(run(CELL)["score"]) == before
    commented = "\n\n# a cell\n" + CELL.replace("x + 1", "(x + 1)  # one more\n\n")
    assert code_version(run(commented)["score"]) == before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("* scale", "- scale"),  # the body
        ("x + 1", "x + 2"),  # a helper
        ("make(10)", "make(11)"),  # closed over
        ("make(10)", "make(10.0)"),
        ("make(10)", "make(True)"),
        ("scale=2", "scale=3"),  # a default
        ("LIMIT = 3", "LIMIT = 4"),  # a global
        ("LIMIT = 3", "LIMIT = [3, {'a': (4,)}]"),
    ],
)
def test_another_body_helper_constant_or_default_is_other_code(run, old, new):
    before = code_version(run(CELL)["score"])
    assert old in CELL
    assert code_version(run(CELL.replace(old, new))["score"]) != before


def test_a_helper_defined_anew_in_a_cell_of_its_own_counts(run):
    before = code_version(run(CELL)["score"])
    assert code_version(run("def helper(x):\n    return x * 7")["score"]) != before


def test_a_global_that_is_only_an_attributes_name_does_not_count(run):
    source = "def score(k, seed):\n    return k.real\nreal = 1"
    before = code_version(run(source)["score"])
    assert code_version(run("real = 2")["score"]) == before


def test_a_class_counts_with_its_methods_and_bases(run):
    source = """
from dataclasses import dataclass
class Base:
    def gain(self):
        return 1
@dataclass(frozen=True)
class Policy(Base):
    k: int = 3
    @property
    def twice(self):
        return self.k * 2
    @staticmethod
    def fixed():
        return 5
policy = Policy()
def score(k, seed):
    return policy.twice
"""
    before = code_version(run(source)["score"])
    assert code_version(run(source)["score"]) == before
    for old, new in [("return 1", "return 2"), ("* 2", "* 3"), ("return 5", "return 6"), ("Policy()", "Policy(4)")]:
        assert code_version(run(source.replace(old, new))["score"]) != before, old


def test_a_metaclass_counts(run):
    source = """
class Meta(type):
    def __len__(cls):
        return 1
class Other(type):
    def __len__(cls):
        return 1
class Policy(metaclass=Meta):
    pass
def score(k, seed):
    return len(Policy)
"""
    before = code_version(run(source)["score"])
    assert code_version(run(source)["score"]) == before
    for old, new in [("return 1", "return 2"), ("=Meta", "=Other")]:
        assert code_version(run(source.replace(old, new))["score"]) != before, old


def test_a_module_that_cannot_be_imported_is_left_to_the_function_that_catches_it(run):
    source = "def score(k, seed):\n    try:\n        import no_such_module\n    except ImportError:\n        return k"
    space = run(source)
    assert code_version(space["score"])
    assert space["score"](1, 0) == 1


def test_functions_that_call_each_other_come_to_an_end(run):
    source = "def a(k, seed): return b(k, seed) if k else 0\ndef b(k, seed): return a(k - 1, seed)"
    before = code_version(run(source)["a"])
    assert code_version(run(source.replace("k - 1", "k - 2"))["a"]) != before


def test_a_cached_helper_counts_and_what_it_has_cached_does_not(run):
    source = "import functools\n@functools.cache\ndef load(): return 3\ndef score(k, seed): return load()"
    space = run(source)
    before = code_version(space["score"])
    space["load"]()
    assert code_version(space["score"]) == before
    assert code_version(run(source.replace("return 3", "return 4"))["score"]) != before


def test_a_partial_and_a_bound_method_count_with_their_code_and_values(run):
    space = run(CELL)
    one, other = (functools.partial(space["score"], scale=scale) for scale in (1, 2))
    assert code_version(one) != code_version(other)
    before = code_version(one)
    assert code_version(functools.partial(run(CELL.replace("x + 1", "x"))["score"], scale=1)) != before


def test_a_learners_module_counts_wherever_its_code_changes_and_not_with_its_comments(run, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    name = f"own_{next(_numbers)}"
    file = tmp_path / f"{name}.py"
    file.write_text("STEP = 1\ndef step(x):\n    return x + STEP\n")
    space = run(f"import {name}\ndef score(k, seed): return {name}.step(k)")
    before = code_version(space["score"])
    file.write_text("STEP = 1\n# a comment\ndef step(x):\n    return x + STEP\n")
    assert code_version(space["score"]) == before
    file.write_text("STEP = 2\ndef step(x):\n    return x + STEP\n")
    assert code_version(space["score"]) != before
    run(f"def score(k, seed):\n    import {name}\n    return {name}.step(k)")
    inside = code_version(space["score"])
    file.write_text("STEP = 3\ndef step(x):\n    return x + STEP\n")
    assert code_version(space["score"]) != inside


def test_what_is_not_hashable_is_named(run):
    space = run("import threading\nguard = threading.Lock()\ndef score(k, seed): return guard.locked()")
    with pytest.raises(NotHashableError, match="the global guard, in score"):
        code_version(space["score"])
    with pytest.raises(NotHashableError, match="generator"):
        digest(x for x in "ab")


@dataclass(frozen=True)
class Point:
    x: float


def test_values_that_compare_equal_have_digests_of_their_own():
    values = [1, 1.0, True, "1", np.int64(1), np.array([1]), np.array([1.0]), np.array([[1]]), Point(1), Point(1.0)]
    values += [(1,), [1], {1}, frozenset({1}), None, float("nan"), float("inf"), 0.0, -0.0]
    assert len({digest(value) for value in values}) == len(values)
    assert digest(Point(2.5)) == digest(Point(2.5))
    assert digest({"a": 1, "b": np.arange(3)}) == digest({"b": np.arange(3), "a": 1})


def test_a_digest_is_the_same_in_another_process():
    source = "\n".join(
        [
            "from tri_memory.lab.sweep_version import code_version, digest",
            "def f(k, seed): return k in {'a', 'b', 'c', 'd'}",
            "print(digest([{'q', 'w', 'e'}, frozenset({'r', 't', 'z'}), 1.5]), code_version(f))",
        ]
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", source], env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, text=True
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(seen) == 1
    assert len(seen.pop().split()) == 2


def test_a_file_of_the_package_counts(tmp_path):
    home = Path(tri_memory.__file__).parent
    shutil.copytree(home, tmp_path / "tri_memory", ignore=shutil.ignore_patterns("__pycache__", "data"))
    source = "from tri_memory.lab.sweep_version import code_version\ndef f(k, seed): return k\nprint(code_version(f))"

    def version() -> str:
        command = [sys.executable, "-c", source]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    before = version()
    assert version() == before
    with (tmp_path / "tri_memory/recall/cosine.py").open("a") as file:
        file.write("\nMORE = 1\n")
    assert version() != before


def test_a_module_made_by_hand_is_no_library():
    assert sweep_version.is_library("numpy.linalg")
    assert sweep_version.is_library("threading")
    assert sweep_version.is_library(threading.Thread.__module__)
    sys.modules["made_by_hand"] = ModuleType("made_by_hand")
    try:
        assert not sweep_version.is_library("made_by_hand")
    finally:
        del sys.modules["made_by_hand"]

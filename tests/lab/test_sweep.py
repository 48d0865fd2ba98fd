"""Order, errors, processes, executors, cache and interrupts of a sweep, with real workers."""

from __future__ import annotations

import asyncio
import importlib
import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import needs
from tri_memory.contracts import ChatTurn
from tri_memory.embedding import HashingEmbedder
from tri_memory.lab import sweep_cache, sweep_version
from tri_memory.lab.datasets import Dataset, Session
from tri_memory.lab.evaluation import evaluate
from tri_memory.lab.sweep import sweep
from tri_memory.lab.sweep_cache import SweepCache
from tri_memory.lab.sweep_constants import set_anew
from tri_memory.lab.sweep_workers import outcomes
from tri_memory.session import tokens

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def quiet_and_apart(monkeypatch, tmp_path):
    """No bar, a cache of its own, and a package that nobody edits meanwhile."""
    monkeypatch.setenv("TQDM_DISABLE", "1")
    monkeypatch.setenv("TRI_MEMORY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sweep_version, "package_digest", lambda folder: "as it is")


@pytest.fixture
def threads():
    with ThreadPoolExecutor(3) as pool:
        yield pool


@pytest.fixture
def one_thread():
    with ThreadPoolExecutor(1) as pool:
        yield pool


def score(k, seed, scale=1):
    if k == 3:
        raise ValueError(f"no {k}\nplease")
    return {"hits": k * scale + seed, "name": f"k{k}"}


def same(one: pd.DataFrame, other: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(one.drop(columns="seconds"), other.drop(columns="seconds"))


# the table


@settings(max_examples=30, deadline=None)
@given(
    grid=st.dictionaries(st.sampled_from("abc"), st.lists(st.integers(0, 9), min_size=1, max_size=3), min_size=1),
    seeds=st.lists(st.integers(0, 99), min_size=1, max_size=3),
)
def test_rows_stand_in_the_order_of_the_grid_whatever_ends_first(grid, seeds):
    def cell(seed, **parameters):
        time.sleep((hash((seed, *parameters.values())) % 3) / 2_000)
        return {"sum": sum(parameters.values()) + seed}

    with ThreadPoolExecutor(4) as pool:
        table = sweep(cell, grid, seeds=seeds, jobs=pool, cache=False)
    assert [*table.columns] == [*grid, "seed", "sum", "seconds", "error"]
    expected = [(*point, seed) for point in product(*grid.values()) for seed in seeds]
    assert [tuple(row) for row in table[[*grid, "seed"]].itertuples(index=False)] == expected
    assert [*table["sum"]] == [sum(row) for row in expected]
    assert [*table.index] == [*range(len(expected))]


def test_a_list_of_mappings_gives_its_rows_and_a_number_the_column_value(threads):
    table = sweep(lambda seed, a=0, b=0: a + b, [{"a": 1}, {"b": 2}, {}], jobs=threads, cache=False)
    assert [*table.value] == [1, 2, 0]
    assert [*table.columns] == ["a", "b", "seed", "value", "seconds", "error"]


def test_a_failing_cell_is_a_row_with_its_error_and_the_line_it_comes_from(threads):
    for jobs in (2, threads):
        table = sweep(score, {"k": [1, 3]}, seeds=2, jobs=jobs, cache=False)
        assert [*table.error[:2]] == [None, None]
        assert table.error[2].startswith("ValueError: no 3 please (line ")
        assert table.error[2].endswith('raise ValueError(f"no {k}\\nplease"))')
        assert table.hits.isna().tolist() == [False, False, True, True]


@pytest.mark.parametrize("returned", [None, [1], {"a": [1]}, {1: 2}, 1j, np.arange(2), object()])
def test_a_result_that_is_no_number_or_text_is_an_error_of_its_cell(threads, returned):
    table = sweep(lambda k, seed: returned, {"k": [1]}, jobs=threads, cache=False)
    assert table.error[0].startswith("TypeError: the result")


def test_a_cell_that_exits_is_a_row(threads):
    table = sweep(lambda k, seed: sys.exit(3), {"k": [1]}, jobs=threads)
    assert table.error[0].startswith("SystemExit: 3")


def test_seeds_may_be_counted_or_listed_by_numpy(threads):
    for seeds in (np.int64(3), np.arange(3), range(3), iter([0, 1, 2])):
        assert [*sweep(lambda k, seed: seed, {"k": [1]}, seeds=seeds, jobs=threads, cache=False).value] == [0, 1, 2]


class _Stop(BaseException):
    pass


@pytest.mark.parametrize("error", [asyncio.CancelledError("late"), _Stop("now"), GeneratorExit("gone")])
def test_what_is_no_exception_is_a_row_as_well(threads, error):
    def cell(k, seed):
        if k == 1:
            raise error
        return k

    for jobs in (threads, 1):
        table = sweep(cell, {"k": [1, 2]}, jobs=jobs, cache=False)
        assert table.error[0].startswith(f"{type(error).__name__}: {error} (line ")
        assert table.value[1] == 2


def test_a_keyboard_interrupt_that_a_cell_raises_stops_the_sweep_and_says_what_is_kept(one_thread, tmp_path):
    def cell(k, seed):
        if k == 2:
            raise KeyboardInterrupt
        return k

    for jobs, cache in ((one_thread, False), (1, False), (1, True)):
        kept = rf"1 of them are kept in {tmp_path / 'cache' / 'sweeps'}, and the same call goes on from there"
        with pytest.raises(KeyboardInterrupt) as stopped:
            sweep(cell, {"k": [1, 2]}, jobs=jobs, cache=cache)
        assert str(stopped.value) == f"1 of 2 cells have ended; {kept if cache else 'none of them is kept'}"


@pytest.mark.parametrize(
    ("grid", "options", "message"),
    [
        ({}, {}, "empty"),
        ([], {}, "empty"),
        ({"k": []}, {}, "'k' has no value"),
        ({"k": "fifo"}, {}, r"write \['fifo'\]"),
        ({"k": 3}, {}, r"write \[3\]"),
        ({"seed": [1]}, {}, "'seed'"),
        ({"error": [1]}, {}, "'error'"),
        ([{"k": 1}, {"n": 1}], {}, "n, seed"),
        ({"n": [1]}, {}, "can't be called with n, seed"),
        ({"k": [1]}, {"seeds": 0}, "seeds=0"),
        ({"k": [1]}, {"seeds": []}, "seeds"),
        ({"k": [1]}, {"seeds": True}, "seeds=True"),
        ({"k": [1]}, {"seeds": 3.5}, r"seeds=3\.5: give how many"),
        ({"k": [1]}, {"seeds": [0.5]}, r"seeds=\[0\.5\]: give how many"),
        ({"k": [1]}, {"seeds": "12"}, "seeds='12': give how many"),
        ({"k": [1]}, {"seeds": None}, "seeds=None: give how many"),
        (None, {}, "grid=None: None is no mapping; give names and their values"),
        (3, {}, "grid=3: 3 is no mapping"),
        ([("k", [1])], {}, r"\('k', \[1\]\) is no mapping; give"),
        (["kx"], {}, "'kx' is no mapping"),
        ({"k": [1]}, {"jobs": 0}, "jobs=0"),
        ({"k": [1]}, {"jobs": True}, "jobs=True"),
        ({"k": [1]}, {"jobs": "all"}, "jobs='all'"),
    ],
)
def test_what_does_not_fit_is_said_before_anything_runs(grid, options, message):
    ran = []

    def cell(k, seed):
        ran.append(k)
        return 1

    with ThreadPoolExecutor(1) as pool, pytest.raises(ValueError, match=message):
        sweep(cell, grid, **{"jobs": pool} | options)
    assert ran == []


def test_a_coroutine_and_a_function_without_seed_are_refused(threads):
    async def cell(k, seed):
        return 1

    with pytest.raises(ValueError, match=r"asyncio\.run"):
        sweep(cell, {"k": [1]}, jobs=threads)
    with pytest.raises(ValueError, match="seed"):
        sweep(lambda k: 1, {"k": [1]}, jobs=threads)


@pytest.mark.parametrize("name", ["k", "seed", "seconds", "error"])
def test_a_result_called_like_another_column_ends_the_sweep(threads, name):
    with pytest.raises(ValueError, match=f"returns '{name}'"):
        sweep(lambda k, seed: {name: 1}, {"k": [1, 2]}, jobs=threads)


# workers


def test_processes_run_what_a_notebook_defines_with_one_thread_each_and_load_once_a_worker(tmp_path):
    script = tmp_path / "notebook.py"
    script.write_text(
        "import os, functools\n"
        "from tri_memory.lab.sweep import sweep\n"
        "class Policy:\n    def __init__(self, k): self.k = k\n    def gain(self): return self.k * STEP\n"
        "STEP = 10\n"
        "@functools.cache\ndef model(): open(os.path.join(HERE, f'loaded-{os.getpid()}'), 'a').write('x'); return 1\n"
        "@functools.cache\ndef fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)\n"
        f"HERE = {str(tmp_path)!r}\n"
        "def cell(policy, rise, seed):\n"
        "    return {'gain': rise(policy.gain()) + model(), 'fib': fib(20), 'threads': os.environ['OMP_NUM_THREADS'],\n"
        "            'own': os.getpid()}\n"
        "table = sweep(cell, {'policy': [Policy(1), Policy(2)], 'rise': [lambda x: x + 1]}, seeds=8, jobs=2)\n"
        "assert table.error.isna().all(), table.error[0]\n"
        "assert [*table.gain] == [12] * 8 + [22] * 8, table\n"
        "assert set(table.fib) == {6765} and set(table.threads) == {'1'} and os.getpid() not in set(table.own)\n"
    )
    done = subprocess.run([sys.executable, script], cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    loaded = [*tmp_path.glob("loaded-*")]
    assert loaded
    assert {file.read_text() for file in loaded} == {"x"}


def test_a_cell_that_kills_its_worker_is_a_row_and_the_others_still_run():
    def cell(k, seed):
        if k == 4:
            os._exit(7)
        return k

    table = sweep(cell, {"k": range(8)}, jobs=2, cache=False)
    assert table.error[4].startswith("WorkerDied: ")
    assert [*table.value.dropna()] == [0, 1, 2, 3, 5, 6, 7]
    assert table.error.notna().sum() == 1


def test_every_executor_gives_the_same_table_and_stays_open(threads):
    distributed = needs("distributed", "pip install distributed")
    grid = {"k": [5, 3, 1], "scale": [2, 1]}
    expected = sweep(score, grid, seeds=3, jobs=2, cache=False)
    with ProcessPoolExecutor(1) as processes:
        for pool in (threads, processes):
            same(sweep(score, grid, seeds=3, jobs=pool, cache=False), expected)
            assert pool.submit(abs, -1).result() == 1
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        same(sweep(score, grid, seeds=3, jobs=client.get_executor(), cache=False), expected)
        assert client.submit(abs, -1).result() == 1


def test_a_broken_executor_gives_rows_with_its_error():
    with ProcessPoolExecutor(1) as pool:
        table = sweep(_die, {"k": [1, 2]}, seeds=3, jobs=pool, cache=False)
    assert len(table) == 6
    assert all("BrokenProcessPool" in error for error in table.error)


def _die(k, seed):
    os._exit(1)


def test_a_worker_process_imports_little_before_it_begins(tmp_path, monkeypatch):
    """What a worker of joblib's costs is numpy, whether a cell needs it or not."""
    (tmp_path / "light_cell.py").write_text("import sys\ndef modules(k, seed):\n    return ' '.join(sys.modules)\n")
    monkeypatch.syspath_prepend(tmp_path)
    modules = sweep(importlib.import_module("light_cell").modules, {"k": [1]}, jobs=1, cache=False).value[0].split()
    assert {"light_cell", "tri_memory.lab.sweep_cell"} <= set(modules)
    assert not {"numpy", "joblib", "cloudpickle", "pandas", "tqdm", "asyncio", "traceback"} & set(modules)


def test_what_a_cell_prints_or_reads_does_not_get_among_the_outcomes(capfd):
    def cell(k, seed):
        print("hello")
        os.write(1, b"raw\n")
        subprocess.run([sys.executable, "-c", "print('child', repr(input.__name__))"], check=True)
        return len(sys.stdin.read()) + len(os.read(0, 100))

    assert [*sweep(cell, {"k": [1, 2, 3]}, jobs=2, cache=False).value] == [0, 0, 0]
    heard = capfd.readouterr()
    assert heard.out == ""
    assert heard.err.count("raw") == heard.err.count("child") == 3


def test_cells_and_answers_of_any_size_get_through():
    big = "x" * 300_000
    table = sweep(lambda k, text, seed: text + big, {"k": range(6), "text": ["y" * 300_000]}, jobs=2, cache=False)
    assert set(table.value.str.len()) == {600_000}


def test_a_python_that_does_not_start_is_an_error_and_no_endless_wait(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/there/is/no/python")
    with pytest.raises(FileNotFoundError, match="no/python"):
        sweep(lambda k, seed: k, {"k": [1, 2]}, jobs=2, cache=False)


def test_a_constant_of_the_package_set_anew_is_refused_for_processes_and_counts_in_threads(monkeypatch, threads):
    def cell(k, seed):
        return tokens.CAPITALS

    assert [*sweep(cell, {"k": [1]}, jobs=threads).value] == [3]
    monkeypatch.setattr(tokens, "CAPITALS", 9)
    assert [*sweep(cell, {"k": [1]}, jobs=threads).value] == [9]
    with pytest.raises(ValueError, match=r"tri_memory\.session\.tokens\.CAPITALS is 9 here and 3 in its file"):
        sweep(cell, {"k": [1]}, jobs=1)


def test_no_constant_of_the_package_counts_as_set_anew_when_nobody_has():
    for path in (ROOT / "tri_memory").rglob("*.py"):
        if "lab" not in path.parts[:-2]:
            with suppress(ModuleNotFoundError):  # an engine whose package is not installed
                importlib.import_module(
                    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
                )
    assert set_anew() == []


def test_what_no_process_can_get_is_said_before_anything_runs(threads):
    lock = threading.Lock()

    def cell(k, seed):
        return int(lock.locked())

    with pytest.raises(ValueError, match="make it inside the function"):
        sweep(cell, {"k": [1]}, jobs=1, cache=False)
    with pytest.warns(RuntimeWarning, match="the closed-over lock") as told:
        assert [*sweep(cell, {"k": [1, 2]}, jobs=threads).value] == [0, 0]
    assert len(told) == 1


# the cache


@dataclass(frozen=True)
class Policy:
    keep: int


def test_finished_cells_are_kept_and_failed_ones_are_not(tmp_path, threads):
    marks = tmp_path / "marks"
    marks.mkdir()
    where = str(marks)

    def cell(k, seed):
        (Path(where) / f"{k}-{seed}-{time.monotonic_ns()}").touch()
        if k == 2:
            raise OSError("busy")
        return {"gain": [0.1, math.nan, math.inf][seed], "text": "é\ud800", "yes": True, "many": 2**70}

    first = sweep(cell, {"k": [1, 2]}, seeds=3, jobs=threads)
    assert len([*marks.iterdir()]) == 6
    second = sweep(cell, {"k": [1, 2]}, seeds=3, jobs=threads)
    assert len([*marks.glob("1-*")]) == 3
    assert len([*marks.glob("2-*")]) == 6
    same(first, second)
    assert [*first.seconds[:3]] == [*second.seconds[:3]]
    assert len([*(tmp_path / "cache").rglob("*.json")]) == 3
    assert not [*(tmp_path / "cache").rglob("*.part")]
    sweep(cell, {"k": [1]}, seeds=3, jobs=threads, cache=False)
    assert len([*marks.glob("1-*")]) == 6
    sweep(cell, {"k": [1]}, seeds=3, jobs=threads, cache=tmp_path / "elsewhere")
    assert len([*(tmp_path / "elsewhere").rglob("*.json")]) == 3


def test_parameters_that_compare_equal_are_cells_of_their_own(threads):
    values = [1, True, 1.0, np.arange(2), Policy(1), Policy(2)]
    for _ in range(2):
        table = sweep(lambda k, seed: repr(k), {"k": values}, jobs=threads)
        assert [*table.value] == [repr(value) for value in values]


@pytest.mark.parametrize(
    "torn", [b"", b"{", b"[1]", b"\xff", b'{"key": "x", "result": {}, "seconds": 1.0}', b"[" * 9999]
)
def test_a_torn_or_foreign_file_is_written_again(tmp_path, threads, torn):
    def cell(k, seed):
        return 7

    sweep(cell, {"k": [1]}, jobs=threads)
    (file,) = (tmp_path / "cache").rglob("*.json")
    whole = json.loads(file.read_text())["result"]
    file.write_bytes(torn)
    assert [*sweep(cell, {"k": [1]}, jobs=threads).value] == [7]
    assert json.loads(file.read_text())["result"] == whole


def test_a_folder_that_cannot_be_written_is_told_once_and_the_sweep_goes_on(tmp_path, threads):
    (tmp_path / "file").write_text("in the way")
    with pytest.warns(RuntimeWarning, match="TRI_MEMORY_CACHE") as told:
        table = sweep(lambda k, seed: k, {"k": [1, 2, 3]}, jobs=threads, cache=tmp_path / "file")
    assert [*table.value] == [1, 2, 3]
    assert len(told) == 1


def test_the_folder_is_the_users_own_unless_the_environment_names_one(monkeypatch, tmp_path):
    assert sweep_cache.default_folder() == tmp_path / "cache"
    monkeypatch.delenv("TRI_MEMORY_CACHE")
    assert sweep_cache.default_folder().name in {"tri_memory", "Cache"}


def test_two_processes_on_one_folder_read_and_write_whole_cells(tmp_path):
    source = (
        "import sys\nfrom pathlib import Path\nfrom tri_memory.lab.sweep_cache import SweepCache\n"
        "cache = SweepCache(Path(sys.argv[1]), abs)\n"
        "keys = [cache.key({'k': k}, 0) for k in range(20)]\n"
        "for turn in range(30):\n    for k, key in enumerate(keys):\n"
        "        cache.put(key, {'text': str(k) * 20_000}, 0.5)\n"
        "        assert cache.get(key) == ({'text': str(k) * 20_000}, 0.5)\n"
    )
    command = [sys.executable, "-W", "error", "-c", source, str(tmp_path)]
    both = [subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    for process in both:
        _, errors = process.communicate(timeout=100)
        assert process.returncode == 0, errors
    assert len([*tmp_path.rglob("*.json")]) >= 20
    assert not [*tmp_path.rglob("*.part")]


# Ctrl-C


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT to send to another process")
def test_an_interrupt_keeps_what_is_done_and_leaves_no_worker(tmp_path):
    script = tmp_path / "long.py"
    script.write_text(
        "import os, time\nfrom pathlib import Path\nfrom tri_memory.lab.sweep import sweep\n"
        f"HERE = Path({str(tmp_path)!r})\n"
        "def cell(k, seed):\n    (HERE / f'pid-{os.getpid()}').touch()\n"
        "    time.sleep(0.01 if k < 4 else 300)\n    return k\n"
        "try:\n    sweep(cell, {'k': range(50)}, jobs=2)\n"
        "except KeyboardInterrupt as stopped:\n    print(stopped)\n"
    )
    process = subprocess.Popen(
        [sys.executable, script], cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    cached = tmp_path / "cache"
    until = time.monotonic() + 60
    while len([*cached.rglob("*.json")]) < 4 and time.monotonic() < until:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal and a Jupyter server do it: everybody gets it
    out, _ = process.communicate(timeout=30)
    kept = f"4 of them are kept in {cached / 'sweeps'}, and the same call goes on from there"
    assert out == f"4 of 50 cells have ended; {kept}\n"
    assert len([*cached.rglob("*.json")]) == 4
    pids = [int(file.name.removeprefix("pid-")) for file in tmp_path.glob("pid-*")]
    assert pids
    assert not [pid for pid in pids if psutil.pid_exists(pid) and "long.py" in " ".join(psutil.Process(pid).cmdline())]
    assert not any(psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie" for pid in pids)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_workers_end_by_themselves_when_their_parent_is_killed(tmp_path):
    script = tmp_path / "killed.py"
    script.write_text(
        "import os, time\nfrom pathlib import Path\nfrom tri_memory.lab.sweep import sweep\n"
        f"HERE = Path({str(tmp_path)!r})\n"
        "def cell(k, seed):\n    (HERE / f'pid-{os.getpid()}').touch()\n    time.sleep(0.1)\n    return k\n"
        "sweep(cell, {'k': range(5000)}, jobs=2)\n"
    )
    process = subprocess.Popen([sys.executable, script], cwd=ROOT)
    until = time.monotonic() + 60
    while len(pids := [int(file.name[4:]) for file in tmp_path.glob("pid-*")]) < 2 and time.monotonic() < until:
        time.sleep(0.05)
    process.kill()
    process.wait()
    assert len(pids) == 2
    while any(map(_runs, pids)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(map(_runs, pids))


def _runs(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


# the bar


@pytest.mark.parametrize("hidden", [True, False])
def test_the_bars_of_sweep_and_evaluate_are_hidden_by_a_variable_set_after_the_import(monkeypatch, capsys, hidden):
    monkeypatch.setenv("TQDM_DISABLE", "1" if hidden else "")
    with ThreadPoolExecutor(1) as pool:
        sweep(lambda k, seed: k, {"k": [1]}, jobs=pool, cache=False)
    assert ("cell" in capsys.readouterr().err) is not hidden
    turns = (ChatTurn("user", "I keep bees by the lake."), ChatTurn("user", "My sister plays the oboe."))
    session = Session("s", "ann", datetime(2026, 1, 1, tzinfo=UTC), "", turns)
    past = Dataset("en", (session,), ())
    evaluate(past, questions=[("who plays?", "plays the oboe")], embedder=HashingEmbedder())
    assert ("questions" in capsys.readouterr().err) is not hidden


def test_closing_drops_what_has_not_begun():
    begun, go = [], threading.Event()

    def cell(k, seed):
        begun.append(k)
        return int(k > 0 and go.wait(20))

    with ThreadPoolExecutor(1) as pool:
        with closing(outcomes(cell, {k: ({"k": k}, 0) for k in range(9)}, pool)) as running:
            number, outcome = next(running)
            assert (number, outcome.result) == (0, {"value": 0})
        go.set()
    assert begun in ([0], [0, 1])


def test_the_cache_has_no_key_for_what_has_no_digest(tmp_path):
    cache = SweepCache(tmp_path, abs)
    with pytest.warns(RuntimeWarning, match="generator"):
        assert cache.key({"k": (x for x in "ab")}, 0) is None
    assert cache.get(None) is None

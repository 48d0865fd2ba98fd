"""The command line: `tri-memory doctor | selftest | chat | decay | forget | purge | collect | lab`.

Each command imports what it needs when it runs, so that `tri-memory --help` is quick and works in a broken environment.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import tri_memory

try:
    import typer
except ModuleNotFoundError as error:
    raise tri_memory.missing_package(error) from None

# Nobody asked JupyterLab to look for news and updates on the network.
QUIET = (
    "--LabApp.news_url=None",
    "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
)

app = typer.Typer(
    name="tri-memory",
    help="Memory for LLM agents in three layers: session, preferences, episodes.",
    epilog="Begin with: tri-memory doctor",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,  # its tracebacks print local variables, and so keys and conversations
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tri-memory {tri_memory.__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    from tri_memory.commands.terminal import be_printable

    be_printable()


@app.command()
def doctor(
    for_class: Annotated[bool, typer.Option("--class", help="All that a class without a network needs, too.")] = False,
) -> None:
    """Check this machine, line by line: OK, FAIL, or optional. Exit code 1 where a line says FAIL.

    With --class it also runs two notebooks with the network off, for a minute, and ends in READY, or NOT READY and why.
    """
    from tri_memory import doctor
    from tri_memory.commands import class_check, terminal

    raise typer.Exit(class_check.report() if for_class else terminal.report(doctor.checks()))


@app.command()
def selftest() -> None:
    """Try all three layers and both ways of compression, offline, in seconds. Exit code 1 where a line says FAIL."""
    from tri_memory import selftest
    from tri_memory.commands.terminal import report

    raise typer.Exit(report(selftest.checks()))


@app.command()
def chat(
    user: Annotated[str, typer.Option("--user", "-u", help="Who you are: preferences and episodes belong to you.")],
    session: Annotated[
        str | None, typer.Option("--session", "-s", help="Which conversation; a new one unless given.")
    ] = None,
) -> None:
    """Talk to an agent that remembers. /help lists the commands; Ctrl-C or /exit ends and archives the session.

    The built-in model answers only from its prompt. For another one set OPENAI_MODEL, with OPENAI_BASE_URL or
    OPENAI_API_KEY.
    """
    from tri_memory.agent.repl import Repl
    from tri_memory.commands.chat import chat_from_env, forget_from_env, greeting
    from tri_memory.commands.terminal import read_line

    try:
        conversation = chat_from_env(user, session)
    except (ValueError, RuntimeError, ConnectionError) as error:
        _fail(str(error))
    typer.echo(greeting(conversation))
    raise typer.Exit(Repl(conversation, read_line, typer.echo, forget_from_env(user)).run())


@app.command()
def decay(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say which would go, and change nothing.")] = False,
) -> None:
    """Archive the episodes that have faded: after three months without a use, or used too seldom. Run it once a night.

    It works on the store that EPISODIC_STORE=pgvector and DATABASE_URL name. A line for cron, at 3:15 every night:

    15 3 * * *  EPISODIC_STORE=pgvector DATABASE_URL=postgresql://… tri-memory decay

    Archived is not deleted: it is kept for audit, can be restored, and is no longer recalled. To run it twice on a day,
    or to stop it half-way, does no harm. It lists what it archived: ids and days, and the first words only in a dry run
    or on a terminal, since the output of cron is a log. A table of an older version is brought up to date first.
    Records of cases and devices don't fade: they are asked for by number, not by nearness.
    """
    import asyncio

    from tri_memory.commands.decay import faded
    from tri_memory.factory import episodic_store_from_env

    def note(line: str) -> None:
        typer.echo(line, err=True)

    try:
        words = dry_run or sys.stdout.isatty()
        in_memory = type(episodic_store_from_env()).__name__.startswith("InMemory")
        said = "" if in_memory else asyncio.run(faded(os.environ["DATABASE_URL"].strip(), dry_run, words, note))
    except (ValueError, RuntimeError, OSError, ImportError) as error:
        _fail(str(error))
    if in_memory:
        _fail(
            "EPISODIC_STORE is memory, where nothing outlives the process, so there is nothing to archive: set "
            "EPISODIC_STORE=pgvector and DATABASE_URL=postgresql://user:password@127.0.0.1/postgres"
        )
    typer.echo(said)


@app.command()
def forget(
    user: Annotated[str, typer.Option("--user", "-u", help="Whom to forget.")],
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask first.")] = False,
) -> None:
    """Forget a user in every store that the environment names, and print the receipt. Exit code 1 where a store failed.

    Sessions, preferences and episodes are deleted at once; the long-term record is hidden at once and deleted by the
    purge after 7 days. With MEMORY_PSEUDONYM_KEY, and a store in Postgres, `tri-memory chat` in other processes is
    waited for and brings nothing back; otherwise end the conversations with that user first, or forget again.
    """
    import asyncio

    from tri_memory.commands.forget import forgotten

    try:
        if not yes:
            _ask(f"Forget everything about {user}? This can't be undone.")
        receipt = asyncio.run(forgotten(user))
    except (ValueError, RuntimeError, OSError, ImportError) as error:
        _fail(str(error))
    typer.echo(receipt.to_text())
    raise typer.Exit(0 if receipt.ok else 1)


@app.command()
def purge(
    scrub: Annotated[bool, typer.Option("--scrub", help="Also rewrite the servers' files, as a superuser.")] = False,
) -> None:
    """Delete for good what was forgotten 7 days ago, of all users. Run it once a day.

    A server's files hold what was deleted until they are written anew: --scrub does so, and locks each table meanwhile.
    """
    import asyncio

    from tri_memory.commands.purge import purged

    try:
        typer.echo(asyncio.run(purged(scrub)))
    except (ValueError, RuntimeError, OSError, ImportError) as error:
        _fail(str(error))


def _ask(question: str) -> None:
    """Go on after a yes on a terminal; nobody is there to say it at the end of a pipe."""
    if not _at_a_terminal():
        _fail("nothing was forgotten: there is no terminal to ask on, so say it with --yes")
    if not typer.confirm(question):
        _fail("nothing was forgotten")


def _at_a_terminal() -> bool:
    return sys.stdin.isatty()


@app.command()
def collect(
    folder: Annotated[Path, typer.Argument(help="Returned notebooks: a sub-folder, or a notebook, for each learner.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write there. In PowerShell, where > changes the bytes.")
    ] = None,
    limit: Annotated[float, typer.Option("--limit", min=1, help="Seconds that one notebook may run.")] = 120,
) -> None:
    """Run returned notebooks again and print a CSV: learner, notebook, exercise, solved yes or no, how it was found.

    tri-memory collect returned/ > results.csv

    Stored outputs are not read: all code cells of a notebook run in a fresh kernel, and the checkers are asked again.
    A notebook that fails, hangs or is none is a row that says so; one with every stub untouched is not run.

    THIS RUNS CODE THAT OTHERS WROTE, with your rights and access to your files. It gets no variable of your environment
    but PATH, language and time zone, and no network through Python's sockets. That stops accidents and no attacker: for
    people whom you don't trust, run it in a container or on a machine without anything of yours.
    """
    from tri_memory.commands.collect import write

    try:
        write(folder, output, limit, lambda line: typer.echo(line, err=True))
    except (ValueError, OSError) as error:
        _fail(str(error))


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def lab(context: typer.Context) -> None:
    """Open JupyterLab on your own copy of the notebooks. Other arguments go to JupyterLab: --no-browser, --port=0."""
    from tri_memory.lab.workbook import prepare

    if find_spec("jupyterlab") is None:
        _fail("JupyterLab is missing: pip install jupyterlab")
    folder = prepare()
    first = "00_start_here.ipynb"
    if not (folder / first).is_file():
        _fail(f"there is no {first} in {folder}; in a clone of the repository, run: make notebooks")
    command = [sys.executable, "-m", "jupyterlab", first, *QUIET, *context.args]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command.append("--allow-root")  # a container, mostly; JupyterLab would refuse to start
    process = subprocess.Popen(command, cwd=folder)
    while True:
        try:
            raise typer.Exit(process.wait())
        except KeyboardInterrupt:  # JupyterLab has it too: it asks whether to shut down, and does so in its own time
            continue


def _fail(message: str) -> None:
    typer.echo(message, err=True)
    raise typer.Exit(1)


if __name__ == "__main__":
    app(prog_name="tri-memory")

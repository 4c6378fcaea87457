"""FILE:FUNCTION and MODULE:FUNCTION: finding a user's function; what the user's code raises, as one line."""

from __future__ import annotations

import inspect
import os
import sys
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import import_module
from importlib.machinery import SourceFileLoader
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from fnad.cli.usage import UsageError, one_line
from fnad.errors import FnadError
from fnad.words import alike


class UserFunction(NamedTuple):
    """A user's function, its name, its file, and the names that the file defines."""

    function: Callable[..., Any]
    name: str
    path: Path
    namespace: dict[str, Any]


def load_target(target: str) -> UserFunction:
    """The function that FILE:FUNCTION or MODULE:FUNCTION names, dotted for an attribute; raises `UsageError`."""
    place, _, name = target.rpartition(":")
    if not place and Path(target).is_file():
        place, name = target, ""
    if not place:
        raise UsageError(f"{target} is not FILE:FUNCTION, as in model.py:loss, nor MODULE:FUNCTION")
    path, module = _imported(place) if _is_module_name(place) else _run(Path(place))
    if not name:
        raise UsageError(f"{target} names no function; {_functions_text(place, module)}")
    try:
        function = attrgetter(name)(module)
    except AttributeError:
        near = alike(name, dir(module))
        meant = f"did you mean {place}:{near}?" if near else _functions_text(place, module)
        raise UsageError(f"there is no {name} in {place}; {meant}") from None
    if not callable(function):
        raise UsageError(f"{name} in {place} is {type(function).__name__}, not a function")
    if inspect.iscoroutinefunction(function):
        raise UsageError(f"{name} in {place} is a coroutine function, which returns no arrays: name an ordinary one")
    return UserFunction(function, name, path, vars(module))


def _functions_text(place: str, module: ModuleType) -> str:
    """The functions that a file or a module defines."""
    own = [name for name, f in vars(module).items() if inspect.isroutine(f) and f.__module__ == module.__name__]
    public = [f"{place}:{name}" for name in own if not name.startswith("_")]
    return f"it has {', '.join(public[:LISTED])}{', …' * (len(public) > LISTED)}" if public else "it has no functions"


LISTED = 12
"""The most functions that are listed."""


def _is_module_name(place: str) -> bool:
    is_dotted_name = all(part.isidentifier() for part in place.split("."))
    return is_dotted_name and not place.endswith(".py") and not Path(place).is_file()


def _imported(name: str) -> tuple[Path, ModuleType]:
    """Import a module of the working directory, or one that is installed."""
    sys.path.insert(0, str(Path.cwd()))
    try:
        spec = find_spec(name)
    except ModuleNotFoundError as error:
        raise UsageError(f"{name} cannot be imported: {one_line(error)}") from None
    if spec is None:
        raise UsageError(f"there is no module {name}, nor a file of this name")
    path = Path(spec.origin or name)
    with user_code(path):
        return path, import_module(name)


def _run(path: Path) -> tuple[Path, ModuleType]:
    """Run a file as a module, which can import its neighbours."""
    if not path.is_file():
        raise UsageError(f"no such file: {path}")
    if not os.access(path, os.R_OK):
        raise UsageError(f"{path} cannot be read")
    spec = spec_from_file_location(path.name, path, loader=SourceFileLoader(path.name, str(path)))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[path.name] = module
    sys.path.insert(0, str(path.resolve().parent))
    with user_code(path):
        spec.loader.exec_module(module)
    return path, module


@contextmanager
def user_code(path: Path) -> Generator[None]:
    """Turn what the user's code raises into a `UsageError` that names the line; fnad's own errors pass through."""
    try:
        yield
    except FnadError as error:
        raise UsageError(one_line(error)) from error
    except (Exception, SystemExit) as error:
        line = _line_in(path, error)
        if line is None:
            raise
        raise UsageError(f"{path}:{line} raised {type(error).__name__}: {one_line(error)}") from error


def _line_in(path: Path, error: BaseException) -> int | None:
    """The innermost line of the file in the error's traceback, or that of a syntax error."""
    if isinstance(error, SyntaxError) and error.filename in {None, str(path)}:
        return error.lineno or 1  # if the bytes are not text, Python has no line either
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return lines[-1] if lines else None

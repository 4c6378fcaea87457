"""FILE:FUNCTION: running a user's file and finding a function in it; what the user's code raises, as one line."""

from __future__ import annotations

import inspect
import os
import sys
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any

from fnad.cli.usage import UsageError, one_line
from fnad.errors import FnadError


def load_function(file: str, name: str) -> Callable[..., Any]:
    """The function of this name, dotted for an attribute, in a Python file; raises `UsageError`."""
    module = _run(Path(file))
    try:
        function = attrgetter(name)(module)
    except AttributeError:
        raise UsageError(f"there is no {name} in {file}") from None
    if not callable(function):
        raise UsageError(f"{name} in {file} is {type(function).__name__}, not a function")
    if inspect.iscoroutinefunction(function):
        raise UsageError(f"{name} in {file} is a coroutine function, which returns no arrays: name an ordinary one")
    return function


def split_target(target: str) -> tuple[str, str]:
    """The two parts of FILE:FUNCTION."""
    file, _, name = target.rpartition(":")
    if not file or not name:
        raise UsageError(f"{target} is not FILE:FUNCTION, as in model.py:loss")
    return file, name


def _run(path: Path) -> ModuleType:
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
    return module


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

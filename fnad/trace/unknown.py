"""Names and keywords that are not there: errors with fnad's word, where it has one (`fnad.words`)."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection
from functools import wraps
from importlib import import_module
from inspect import signature
from typing import ParamSpec, TypeVar

import numpy as np

from fnad.errors import MissingAttributeError, UnknownKeywordError
from fnad.tracebacks import boundary
from fnad.words import WORDS, alike

P = ParamSpec("P")
R = TypeVar("R")


def explained(function: Callable[P, R]) -> Callable[P, R]:
    """A function that raises `UnknownKeywordError` for a keyword that it does not take."""
    known = signature(function).parameters

    @boundary
    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        check_keywords(function.__name__, known, kwargs)
        return function(*args, **kwargs)

    return call


def check_keywords(function: str, known: Collection[str], given: Collection[str]) -> None:
    """Raise `UnknownKeywordError` for a keyword that is not among the known ones."""
    for name in given:
        if name not in known:
            raise UnknownKeywordError.here(
                f"{function} takes no {name}=", remedy=_word(name, known) or _known(name, known)
            )


def _word(name: str, known: Collection[str]) -> str | None:
    """Fnad's word for a keyword, unless it is one that the function does not take either."""
    word = WORDS.get(f"{name}=")
    other = re.fullmatch(r"write (\w+)=", word or "")
    return None if other and other[1] not in known else word


def _known(name: str, known: Collection[str]) -> str:
    near = alike(name, known)
    return f"did you mean {near}=?" if near else f"it takes {', '.join(known)}"


def missing(module: str, name: str) -> AttributeError:
    """The error for a name that a module does not have."""
    what = f"module {module!r} has no attribute {name!r}"
    is_import = sys._getframe(3).f_code.co_name == "_handle_fromlist"  # pyright: ignore[reportPrivateUsage]
    word = None if is_import else _word_for(module, name)  # of which an import shows nothing
    return MissingAttributeError.here(what, remedy=word) if word else AttributeError(what)


def _word_for(module: str, name: str) -> str | None:
    word = WORDS.get(f"{module}.{name}")
    if word is not None or name.startswith("_"):
        return word
    if module == "fnad" and name.startswith("tree_"):
        own = name.removeprefix("tree_")
        return f"write fnad.tree.{own}" if hasattr(import_module("fnad.tree"), own) else None
    if module == "fnad" and name in np.__all__ and callable(getattr(np, name)):
        return f"write np.{name}"
    found = import_module(module)
    near = alike(name, getattr(found, "__all__", None) or dir(found))
    return near and f"did you mean {module}.{near}?"

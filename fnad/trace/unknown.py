"""Keywords that are not there: errors with fnad's word, where it has one (`fnad.words`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from functools import wraps
from inspect import signature
from typing import ParamSpec, TypeVar

from fnad.errors import UnknownKeywordError
from fnad.trace.source import current_source
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
            raise UnknownKeywordError(
                f"{function} takes no {name}=",
                source=current_source(),
                remedy=_word(name, known) or _known(name, known),
            )


def _word(name: str, known: Collection[str]) -> str | None:
    """Fnad's word for a keyword, unless it is one that the function does not take either."""
    word = WORDS.get(f"{name}=")
    other = re.fullmatch(r"write (\w+)=", word or "")
    return None if other and other[1] not in known else word


def _known(name: str, known: Collection[str]) -> str:
    near = alike(name, known)
    return f"did you mean {near}=?" if near else f"it takes {', '.join(known)}"

"""User functions without source that is what runs: what other code calls in their place.

No hook reports what such a function reads. So a call of it has the traced function traced at each call, and the
attributes of its arguments are recorded. Methods that `dataclasses` and `namedtuple` have made read nothing else.
"""

from __future__ import annotations

import functools
import sys
import textwrap
import warnings
import weakref
from functools import cache
from types import CodeType, FunctionType
from typing import Any

from fnad.codes import names_of, notes_of, with_code
from fnad.errors import TracerEscapeError
from fnad.ir.builder import is_tracing
from fnad.trace.conversion import converted_text, is_generated, no_source
from fnad.trace.libraries import is_trusted
from fnad.trace.reads import content_of
from fnad.trace.recording import RECORDING
from fnad.trace.source import current_source
from fnad.trace.stand_ins import enter
from fnad.trace.wrapping import has_traced


def without_source(function: FunctionType) -> Any:
    """The callee for a user function without source, of which no hook reports the reads.

    It refuses traced values if code without hooks may compare `type(x)`.
    """
    code, is_known = function.__code__, is_generated(function)

    @functools.wraps(function, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        if not is_known and has_traced((args, kwargs)):
            asking = function.__qualname__ if any(arg is type for arg in args) else asking_for_class(function)
            if asking is not None:
                raise refused(asking, code)
        for recorder in RECORDING.values if is_tracing() else ():
            for arg in (*args, *kwargs.values()):
                recorder.list_attributes(arg)
            if not is_known:
                recorder.meet(f"{no_source(code)}, so its reads are not recorded", current_source())
        return function(*args, **kwargs)

    return call


def asking_for_class(function: FunctionType) -> str | None:
    """The name of the function that may call `type`: a function without source, or one that its code names."""
    pending, seen = [function], set[FunctionType]()
    while pending:
        found = pending.pop()
        if found not in seen and not is_trusted(found.__code__.co_filename):
            seen.add(found)
            names = names_of(found.__code__)
            if "type" in names:
                return found.__qualname__
            named = [
                *map(found.__globals__.get, names),
                *map(content_of, found.__closure__ or ()),
            ]
            kinds = [value for value in named if isinstance(value, type)]
            named += [getattr(part, "__func__", part) for kind in kinds for part in vars(kind).values()]
            pending += [value for value in named if isinstance(value, FunctionType)]
    return None


def refused(name: str, code: CodeType) -> TracerEscapeError:
    """The error for code without source that compares the class of a value."""
    return TracerEscapeError.here(
        f"{name} compares the class of a value by type, and {no_source(code)}",
        remedy="write it in a file, or write isinstance(x, float)",
    )


@cache
def _code(free: int) -> CodeType:
    """The code of functions with so many free variables: a frame copies as many as its function has."""
    names = ", ".join(["", *[f"v{i}" for i in range(free)]])
    source = f"""
def around(_{names}):
    def watched(*args, **kwargs):
        if False: (None{names})
        return "the callee"(*args, **kwargs)
    return watched
"""
    namespace: dict[str, Any] = {}
    with warnings.catch_warnings(action="ignore"):  # a text is not callable
        exec(source, namespace)  # which is written above
    return namespace["around"](*[None] * (free + 1)).__code__


def watched_code(function: FunctionType, callee: Any = None) -> CodeType:
    """Code that replaces the code of a function without source: it calls `callee`, or reports the call."""
    own, like = function.__code__, _code(len(function.__code__.co_freevars))
    callee = callee or without_source(with_code(function, own))
    made = like.replace(
        co_consts=tuple(callee if constant == "the callee" else constant for constant in like.co_consts),
        co_freevars=own.co_freevars,
        co_filename=own.co_filename,
        co_firstlineno=own.co_firstlineno,
        co_name=own.co_name,
        co_qualname=own.co_qualname,
    )
    notes_of(made)["original"] = weakref.ref(own)
    return made


def evaluating(function: Any) -> Any:
    """`eval` or `exec`, of which the text is converted."""

    def run(source: Any, /, globals: Any = None, locals: Any = None, **options: Any) -> Any:  # noqa: A002
        frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
        own = frame.f_globals if globals is None else globals
        inner = locals if locals is not None else frame.f_locals if globals is None else own
        text = textwrap.dedent(source).strip() if function is eval and isinstance(source, str) else source
        code = converted_text(text, "eval" if function is eval else "exec") if isinstance(text, str) else text
        if code is source and isinstance(code, CodeType) and "type" in names_of(code) and has_traced(dict(inner)):
            raise refused("the text of eval or exec", code)
        return function(code, own, inner, **options)

    return run


for _function in (eval, exec):
    enter(_function, evaluating)

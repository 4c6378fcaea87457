"""Which function of SciPy the user called, by the frames of the call."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile
from types import FrameType, ModuleType
from typing import Any

from fnad.trace.source import text_at

WRAPPED = ("fun", "f", "func", "hypotest_fun_in")
"""The variables that hold SciPy's function in functions around it."""

OLDER = ("optimize.fmin_ncg", "optimize.fmin_tnc", "optimize.fmin_slsqp")
SOLVERS: dict[str, str] = dict.fromkeys(OLDER, "scipy.optimize.minimize")
"""The functions with a rule that compute the same, by the name of a function without one."""


def scipy_remedy(frames: Sequence[FrameType]) -> str | None:
    """The way out of a call of SciPy, None if there is none among these frames, innermost first."""
    called = next((f for f in reversed(frames) if f.f_globals.get("__name__", "").startswith("scipy.")), None)
    if called is None:
        return None
    return _remedy(_name(called))


def compiled_remedy(frame: FrameType | None) -> str | None:
    """The way out of a call of SciPy's compiled code, which has no frame, from this one; None if it is none."""
    name = None if frame is None else _name_of_callee(frame)
    return None if name is None else _remedy(name)


def _remedy(name: str) -> str:
    solver = SOLVERS.get(name)
    way = "use NumPy's functions" if solver is None else f"use {solver}"
    return f"scipy.{name} has no rule for traced values, and SciPy computes on ordinary arrays: {way}"


def _name(frame: FrameType) -> str:
    """The name of the function under scipy: the module, the distribution if it is a method of one, its own."""
    module, name = frame.f_globals["__name__"], frame.f_code.co_name
    code, given = frame.f_code, frame.f_locals
    function = next((given[name] for name in WRAPPED if name in code.co_freevars and name in given), None)
    if function is not None:
        module, name = function.__module__, function.__qualname__.removesuffix(".__init__")
    public = takewhile(lambda part: not part.startswith("_"), module.split(".")[1:])
    owner = given.get("self")
    if owner is not None and hasattr(
        owner, name.lstrip("_")
    ):  # the frame of the public one, which has a rule, is missing
        name = name.lstrip("_")
    own = [] if name in ("__call__", "__init__") else [name]
    return ".".join([*public, *([] if owner is None else [_owner_name(owner)]), *own])


def _name_of_callee(frame: FrameType) -> str | None:
    """The name of what a frame is calling, by the text of the call, if the text begins with a SciPy name."""
    match = re.match(r"(\w+)(.*)\(", text_at(frame.f_code, frame.f_lasti))
    if match is None:
        return None
    found = frame.f_locals.get(match[1], frame.f_globals.get(match[1]))
    named: Any = found if hasattr(found, "__name__") else type(found)
    is_module = isinstance(found, ModuleType)
    module = named.__name__ if is_module else named.__module__ or ""
    if module.partition(".")[0] != "scipy":
        return None
    own = "" if is_module else f".{named.__name__}"
    public = takewhile(lambda part: not part.startswith("_"), module.split(".")[1:])
    return (".".join(public) + own + match[2]).removeprefix(".")


def _owner_name(owner: Any) -> str:
    """The name of a distribution, which some of SciPy's classes have as an attribute, some in their own name."""
    distribution = getattr(owner, "dist", owner)
    return getattr(distribution, "name", None) or re.sub("_(gen|frozen)$", "", type(owner).__name__)

"""Which function of SciPy the user called, by the frames of the call, and what fnad.scipy has in its place."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from types import FrameType
from typing import Any

WRAPPERS = {"wrapper": "fun", "wrapped": "f", "inner": "func"}
"""Functions around SciPy's, by name, and the variable that holds SciPy's."""

SOLVERS = {
    **dict.fromkeys(("optimize.root", "optimize.fsolve"), "root"),
    **dict.fromkeys(("optimize.minimize", "optimize.fmin_bfgs", "optimize.fmin_cg"), "minimize"),
    "integrate.solve_ivp": "odeint",
}
"""What of fnad solves the equations that a function of SciPy's solves, by the name of that."""


def scipy_remedy(frames: Sequence[FrameType]) -> str | None:
    """The way out of a call of SciPy, None if there is none among these frames, innermost first."""
    called = next((f for f in reversed(frames) if f.f_globals.get("__name__", "").startswith("scipy.")), None)
    if called is None:
        return None
    names = _names(called)
    if _is_offered(names):
        return f"SciPy computes on ordinary arrays: use fnad.scipy.{'.'.join(names)}"
    solver = SOLVERS.get(".".join(names))
    if solver is not None:
        return f"SciPy computes on ordinary arrays: use fnad.{solver}"
    return "SciPy computes on ordinary arrays, and fnad.scipy has no rule for this function: use NumPy's functions"


def _names(frame: FrameType) -> list[str]:
    """The names of the function under scipy: the module, the distribution if it is a method of one, its own."""
    module, name = frame.f_globals["__name__"], frame.f_code.co_name
    function = frame.f_locals.get(WRAPPERS.get(name, ""))
    if function is not None:
        module, name = function.__module__, function.__name__
    owner = frame.f_locals.get("self")
    return [
        module.split(".")[1],
        *([] if owner is None else [_owner_name(owner)]),
        *([] if name == "__call__" else [name]),
    ]


def _owner_name(owner: Any) -> str:
    """The name of a distribution, which some of SciPy's classes have as an attribute, some in their own name."""
    distribution = getattr(owner, "dist", owner)
    return getattr(distribution, "name", None) or re.sub("_(gen|frozen)$", "", type(owner).__name__)


def _is_offered(names: Sequence[str]) -> bool:
    """Whether fnad.scipy has a function of its own under these names."""
    module, *path = names
    if find_spec(f"fnad.scipy.{module}") is None:
        return False
    found: Any = import_module(f"fnad.scipy.{module}")
    for name in path:
        if name not in vars(found):
            return False
        found = vars(found)[name]
    return bool(path)

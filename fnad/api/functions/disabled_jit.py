"""Loops and branches as Python runs them, where `fnad.disable_jit` says so: on ordinary values, to step through."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np

from fnad import config
from fnad.api.staging.leaves import Function, map_leaves
from fnad.errors import endless
from fnad.ir.builder import is_tracing


def is_plain() -> bool:
    """True if a loop or a branch is to be run so."""
    return config.current().disable_jit and not is_tracing()


def repeated_while(cond_fun: Function, body_fun: Function, value: Any, limit: int | None) -> Any:
    """`while_loop`."""
    for step in count():
        if not cond_fun(value):
            return value
        if step == limit:
            raise endless(step, None)
        value = body_fun(value)
    return None


def repeated(lower: Any, upper: Any, body_fun: Function, value: Any) -> Any:
    """`fori_loop`."""
    for i in range(int(lower), int(upper)):
        value = body_fun(i, value)
    return value


def scanned(f: Function, carry: Any, xs: Any, length: int, reverse: bool) -> tuple[Any, Any]:
    """`scan`, of one step at least."""
    results: list[Any] = []
    for i in reversed(range(length)) if reverse else range(length):
        carry, y = f(carry, map_leaves(lambda x, i=i: x[i], xs))
        results.append(y)
    rows = reversed(results) if reverse else results
    return carry, map_leaves(lambda *leaves: np.stack(leaves), *rows)

"""Functions of bottleneck on traced values, by `fnad.register_rule`: reductions that NumPy has too.

Packages use them for their speed; otherwise they equal NumPy's functions. Others, as moving windows, have no rule.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module

import numpy as np

from fnad.trace.dispatch import call_function
from fnad.trace.stand_ins import register
from fnad.trace.standard import Function

SAME = ("median", "nanargmax", "nanargmin", "nanmax", "nanmean", "nanmedian", "nanmin", "nanstd", "nansum", "nanvar")
OWN: dict[str, Function] = {
    "allnan": lambda a, axis=None: np.all(np.isnan(a), axis=axis),
    "anynan": lambda a, axis=None: np.any(np.isnan(a), axis=axis),
    "ss": lambda a, axis=None: np.sum(a * a, axis=axis),
}


def of_array(compute: Function) -> Function:
    """A rule of bottleneck: on an array, or what makes one."""
    return lambda a, *args, **options: compute(call_function(np.asarray, (a,), {}), *args, **options)


with suppress(ImportError):  # of bottleneck, which is optional
    _bottleneck = import_module("bottleneck")
    for _name, _compute in {**{name: getattr(np, name) for name in SAME}, **OWN}.items():
        register(getattr(_bottleneck, _name), of_array(_compute))

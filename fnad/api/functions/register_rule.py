"""Rules for functions of libraries that cannot be traced: `register_rule`."""

from __future__ import annotations

from typing import Any

from fnad.api.running.transformed import forget_traces
from fnad.api.staging.leaves import Function, check_function
from fnad.trace.stand_ins import register


def register_rule(function: Any, rule: Function) -> None:
    """Register what traces call in the place of a function wherever user code or a library calls it.

    With a traced argument, also in a list or a dict, `rule` is called with the same arguments. Otherwise the function
    itself is called. It is found by its identity, whatever its name is where it is called. A rule of this process
    replaces one that was registered before, and fnad's own rule. Functions that were traced before are traced again.

    Parameters:
        function (function or class): One that cannot be traced, as it is written in C, or whose derivative is known.
        rule (function): Takes the arguments of `function`, and returns what it returns. It is traced, so it computes by
            NumPy, or is one of `fnad.external` and `fnad.custom_jvp`.
    Raises:
        ArgumentTypeError: If `rule` is not a function.
    Examples:
        >>> import ctypes, ctypes.util
        >>> import numpy as np, fnad
        >>> exp2 = ctypes.CDLL(ctypes.util.find_library("m")).exp2
        >>> exp2.restype, exp2.argtypes = ctypes.c_double, [ctypes.c_double]
        >>> fnad.register_rule(exp2, lambda x: 2.0**x)
        >>> fnad.grad(lambda x: exp2(3.0) * exp2(x))(0.0)  # 8 ln 2
        np.float64(5.545177444479562)
    """
    check_function(rule, "register_rule")
    register(function, rule)
    forget_traces()

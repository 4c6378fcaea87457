"""The choice between saving and recomputing in reverse mode: `checkpoint`."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, get_args

from fnad.api.running.execution import in_trace
from fnad.api.running.transformed import with_options
from fnad.api.staging.leaves import Function, check_function, flatten, leaves_of, unflatten
from fnad.api.staging.marshalling import leaf_types, symbol
from fnad.api.staging.regions import apply, calling, region_of_call
from fnad.api.staging.save_policy import Policy, SavePolicy, saving
from fnad.control.checkpoint import checkpoint as checkpoint_primitive
from fnad.errors import SettingError
from fnad.trace.hooks import callee


@with_options
def checkpoint(
    f: Function, *, policy: Literal["all"] | Policy = "all", snapshots: int = 32, budget: int | None = None
) -> Function:
    """The function `f`, for which reverse mode saves fewer values and computes them again.

    Parameters:
        f (function): Takes and returns pytrees of arrays and numbers.
        policy ({"all", "carry", "sqrt", "binomial"}): "all" saves only the arguments of `f`. The others concern the
            loops of `f` (`scan`, `map`, `fori_loop`, `while_loop`): "carry" saves the carry of each step. "sqrt" saves
            about 2 √n carries of n steps, and takes each step three times. "binomial" saves `snapshots` carries, by the
            schedule with the fewest repetitions (Griewank and Walther, "Algorithm 799: Revolve", ACM TOMS 26, 2000):
            with s snapshots, n <= C(s + r, s) steps are each taken at most r + 1 times more.
        snapshots (int): The number of carries that "binomial" saves.
        budget (int, optional): Bytes for the snapshots of each loop, in place of their number.
    Returns:
        function: A function with the values and derivatives of `f`.
    Raises:
        SettingError: If there is no such policy, `snapshots` is below 1, or `budget` is negative.
    Examples:
        >>> import numpy as np, fnad
        >>> def last(x):
        ...     return fnad.scan(lambda s, _: (np.sin(s), None), x, length=1000)[0]
        >>> bool(fnad.grad(fnad.checkpoint(last, policy="sqrt"))(1.0) == fnad.grad(last)(1.0))
        True
    """
    check_function(f, "checkpoint")
    _check(policy, snapshots, budget)

    def run(*args: Any, **kwargs: Any) -> Any:
        if policy == "all":
            return in_trace(f, lambda args, kwargs: _checkpointed(f, args, kwargs), args, kwargs)
        with saving(SavePolicy(policy, snapshots, budget)):
            return callee(f)(*args, **kwargs)

    return run


remat = checkpoint


def _check(policy: str, snapshots: int, budget: int | None) -> None:
    policies = ("all", *get_args(Policy))
    if policy not in policies:
        names = ", ".join(map(repr, policies))
        raise SettingError.here(f"there is no policy {policy!r}", remedy=f"give one of {names}")
    if snapshots < 1:
        raise SettingError.here(f"snapshots is {snapshots}", remedy="give at least one")
    if budget is not None and budget < 0:
        raise SettingError.here(f"budget is {budget}", remedy="give a number of bytes")


def _checkpointed(f: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    leaves, structure = leaves_of((args, kwargs), lambda i: ("args", "kwargs")[i])
    given = list(map(symbol, leaves))
    call, own = calling(partial(apply, f), partial(unflatten, structure)), flatten((args, kwargs))[0]
    region = region_of_call(f, call, leaf_types(leaves), given, given=own)
    return region.rebuilt(checkpoint_primitive(*given, *region.consts, regions=(region.program,)))

"""What reverse mode saves and what it computes again: `checkpoint`."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, get_args

from fnad.api.leaves import Function, check_function, flatten, leaves_of, unflatten
from fnad.api.marshalling import leaf_types, symbol
from fnad.api.regions import apply, calling, in_trace, region_of_call
from fnad.api.saving import Policy, SavePolicy, saving
from fnad.api.transformed import with_options
from fnad.control.checkpoint import checkpoint as checkpoint_primitive
from fnad.errors import SettingError
from fnad.trace.source import current_source
from fnad.watch import unwatched


@with_options
def checkpoint(
    f: Function, *, policy: Literal["all"] | Policy = "all", snapshots: int = 32, budget: int | None = None
) -> Function:
    """The function `f`, of which reverse mode saves less of what it computed, and computes it again.

    The policy says what is computed again:

    - "all": all of `f`; only its arguments are saved.
    - "carry": in the loops of `f`, the steps: of each only the carry is saved.
    - "sqrt": in the loops of `f`, the steps: of n steps about 2 √n carries are saved, and each is taken three times. A
      while loop, whose n nobody knows before, goes in segments that become longer.
    - "binomial": in the loops of `f`, the steps: `snapshots` carries are saved, however many steps there are, by the
      schedule that repeats least (Griewank and Walther, "Algorithm 799: Revolve", ACM TOMS 26, 2000): with s snapshots
      and n <= C(s + r, s) steps, each step is taken at most r + 1 times more. With `budget`, there are as many
      snapshots in each loop as go into so many bytes, one at least.

    Values and derivatives are the same under each. Loops are those of `scan`, `map`, `fori_loop`, `while_loop`.

    Raises `SettingError` for a policy that does not exist, fewer than one snapshot, or a budget below 0.

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
            return f(*args, **kwargs)

    return run


remat = checkpoint


def _check(policy: str, snapshots: int, budget: int | None) -> None:
    policies = ("all", *get_args(Policy))
    if policy not in policies:
        names = ", ".join(map(repr, policies))
        raise SettingError(f"there is no policy {policy!r}", source=current_source(), remedy=f"give one of {names}")
    if snapshots < 1:
        raise SettingError(f"snapshots is {snapshots}", source=current_source(), remedy="give at least one")
    if budget is not None and budget < 0:
        raise SettingError(f"budget is {budget}", source=current_source(), remedy="give a number of bytes")


@unwatched
def _checkpointed(f: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    leaves, structure = leaves_of((args, kwargs), lambda i: ("args", "kwargs")[i])
    given = list(map(symbol, leaves))
    call, own = calling(partial(apply, f), partial(unflatten, structure)), flatten((args, kwargs))[0]
    region = region_of_call(f, call, leaf_types(leaves), given, given=own)
    return region.rebuilt(checkpoint_primitive(*given, *region.consts, regions=(region.program,)))

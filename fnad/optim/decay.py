"""Weight decay: updates that pull parameters towards zero."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fnad.api.staging.leaves import map_leaves
from fnad.errors import UpdateError
from fnad.optim.hyperparameters import Number, as_dtype_of, check_not_negative, named
from fnad.optim.transformation import GradientTransformation, State, stateless
from fnad.optim.trees import Tree, check_like, check_structure
from fnad.upward import UPWARD


@named
def add_decayed_weights(
    weight_decay: Number = 0.0, mask: Tree | Callable[[Tree], Tree] | None = None
) -> GradientTransformation:
    """The transformation that adds weight_decay · p to the gradient of each parameter p.

    After a direction such as Adam's this is decoupled weight decay: Loshchilov, Hutter, "Decoupled weight decay
    regularization" (2019), algorithm 2. The mask, a pytree of Python bools like the parameters or a function that
    returns it for them, says which decay. `update` raises `UpdateError` if it is not given the parameters, or
    where the mask is not like them.

    >>> from fnad import optim
    >>> opt = optim.add_decayed_weights(0.1, mask=lambda params: {"weight": True, "bias": False})
    >>> opt.update({"weight": 1.0, "bias": 1.0}, optim.EmptyState(), {"weight": 5.0, "bias": 5.0})[0]
    {'weight': 1.5, 'bias': 1.0}
    """
    check_not_negative("weight_decay", weight_decay)

    def decayed(u: Any, p: Any, decays: bool = True) -> Any:
        return u + as_dtype_of(u, weight_decay) * p if decays else u

    def update(updates: Tree, state: State, params: Tree | None = None) -> tuple[Tree, State]:
        if params is None:
            raise UpdateError.here("weight decay needs the parameters", remedy="update(gradients, state, params)")
        check_like(updates, "gradients", params)
        if mask is None:
            return map_leaves(decayed, updates, params), state
        decays = UPWARD.callee(mask)(params) if callable(mask) else mask
        check_structure(decays, "mask", params)
        return map_leaves(decayed, updates, params, decays), state

    return stateless(update)

"""Gradient transformations: pairs of pure functions, which form optimizers when they are chained.

    state = opt.init(params)
    updates, state = opt.update(gradients, state, params)
    params = apply_updates(params, updates)

The state is a pytree of arrays, whose structure, shapes and dtypes never change, so that it can be the argument of a
compiled step and the carry of a loop. Updates have the shapes and dtypes of the parameters, and are added.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from fnad.api.inspect.tables import html_table
from fnad.api.staging.leaves import map_leaves
from fnad.errors import UpdateError
from fnad.optim.hyperparameters import made_again, named
from fnad.optim.trees import Tree, check_like
from fnad.tracebacks import boundary

State = Any
"""The pytree of arrays that a transformation keeps between steps."""


class TransformInitFn(Protocol):
    """From the parameters to the state before the first step."""

    def __call__(self, params: Tree) -> State: ...


TransformUpdateFn: TypeAlias = Callable[..., tuple[Tree, State]]
"""From gradients, state and parameters, and what more it takes by keyword, to updates and the next state."""


class GradientTransformation(NamedTuple):
    """The pair `init(params) -> state`, `update(updates, state, params=None) -> (updates, state)`."""

    init: TransformInitFn
    update: TransformUpdateFn

    def __repr__(self) -> str:
        return f"fnad.optim.{self.update.__qualname__}"

    def _repr_html_(self) -> str:
        make, args, kwargs = getattr(self.update, "made_by", (type(self), self, {}))
        bound = signature(make).bind(*args, **kwargs)
        bound.apply_defaults()
        shown = [
            (name, "\n".join(map(repr, value)) if type(value) is tuple else repr(value))
            for name, value in bound.arguments.items()
        ]
        return html_table(f"fnad.optim.{make.__name__}", shown, head=("parameter", "value"))

    def __reduce__(self) -> Any:
        made_by = getattr(self.update, "made_by", None)
        return (type(self), tuple(self)) if made_by is None else (made_again, made_by)


class GradientTransformationExtraArgs(GradientTransformation):
    """A pair whose update takes more, by keyword: `value`, `grad` and `value_fn` of a line search."""


class EmptyState(NamedTuple):
    """The state of a stateless transformation."""


def stateless(update: TransformUpdateFn) -> GradientTransformation:
    """The transformation of an update that keeps no state."""
    return GradientTransformation(lambda params: EmptyState(), update)


@named
def identity() -> GradientTransformation:
    """The transformation that leaves gradients unchanged."""
    return stateless(lambda updates, state, params=None: (updates, state))


@named
def chain(*transformations: GradientTransformation) -> GradientTransformation:
    """The transformation that applies others in order; its state is the tuple of theirs.

    Keywords of its update go to those that take any. Raises `UpdateError` for a state of another length.

    >>> from fnad import optim
    >>> opt = optim.chain(optim.clip_by_global_norm(1.0), optim.scale(-0.5))
    >>> opt.update(np.array([3.0, 4.0]), opt.init(np.zeros(2)))[0]
    array([-0.3, -0.4])
    """

    def init(params: Tree) -> State:
        return tuple(each.init(params) for each in transformations)

    @boundary
    def update(updates: Tree, state: State, params: Tree | None = None, **extra: Any) -> tuple[Tree, State]:
        if len(state) != len(transformations):
            raise UpdateError.here(
                f"the state is of {len(state)} transformations, of which there are {len(transformations)} here",
                remedy="give the state that init or the last update of this transformation returned",
            )
        states: list[State] = []
        for each, before in zip(transformations, state, strict=True):
            given = extra if isinstance(each, GradientTransformationExtraArgs) else {}
            updates, after = each.update(updates, before, params, **given)
            states.append(after)
        return updates, tuple(states)

    takes_more = any(isinstance(each, GradientTransformationExtraArgs) for each in transformations)
    return (GradientTransformationExtraArgs if takes_more else GradientTransformation)(init, update)


@boundary
def apply_updates(params: Tree, updates: Tree) -> Tree:
    """The parameters with the updates added.

    Shapes and dtypes are those of the parameters. Raises `UpdateError` where the updates differ in structure, shape or
    dtype.

    >>> from fnad import optim
    >>> optim.apply_updates({"w": np.array([1.0, 2.0])}, {"w": np.array([0.5, -0.5])})
    {'w': array([1.5, 1.5])}
    """
    check_like(updates, "updates", params)
    return map_leaves(np.add, params, updates)

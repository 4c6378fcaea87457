"""Collectives of processes that run equal programs, by MPI: `psum`, `pmean`, `pmax`, `all_gather` and others.

Each takes a pytree of arrays. Outside of a trace it exchanges messages at once, and in a program each time the program
passes it, in the order of the program: in `jit`, in loops, in a whole training run.

Derivatives are those of one function on the whole machine: its argument is the arguments of all ranks, its value the
sum of the results of all ranks. So `jvp` pushes the tangents of all ranks, and `vjp` and `grad` pull the cotangents
of all ranks: the gradient on a rank is that of the *sum of the losses of all ranks* with respect to the argument of
this rank. The transpose of `psum` is `psum`, that of `all_gather` is `reduce_scatter`, that of `broadcast` the sum at
its root, and at ties `pmax` divides its cotangent evenly, as `np.max` does.

For data that is divided among the ranks, the plain form is right without any of this:

    value, slopes = fnad.value_and_grad(local_loss)(params, part)
    slopes = fnad.distributed.pmean(slopes)

A loss that is itself the result of `psum` is the same number on each of `size()` ranks. Their sum is `size()` times
that number, and so is the gradient: divide it by `size()`, or write `pmean` in the place of `psum`. JAX's `pmap` has
this convention for `psum`; JAX's `shard_map` records which values are equal on all ranks, and differentiates one value.
"""

from __future__ import annotations

import hashlib
import sys
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np

from fnad.api.staging.inlining import traced
from fnad.api.staging.leaves import leaves_of, to_user
from fnad.api.staging.marshalling import symbol
from fnad.errors import DistributedError, FnadError
from fnad.ir.builder import current_builder, is_tracing
from fnad.ir.primitive import Primitive
from fnad.ir.types import BOOL, I64, Aval
from fnad.numpy.operands import strong
from fnad.ops import collectives
from fnad.ops.conversion import convert_to
from fnad.trace.source import current_source
from fnad.trace.tracing import symbol_of
from fnad.tracebacks import boundary

__all__ = ["all_gather", "broadcast", "pmax", "pmean", "psum", "rank", "reduce_scatter", "run", "size"]

T = TypeVar("T")


def rank() -> int:
    """The number of this process among all, from 0.

    Returns:
        int: Less than `size()`.
    Raises:
        DistributedError: If MPI is missing.
    Examples:
        >>> import fnad.distributed
        >>> fnad.distributed.rank()  # mpiexec -n 2 python FILE: 1 on the second rank  # doctest: +SKIP
        1
    """
    return _world().Get_rank()


def size() -> int:
    """The number of processes.

    Returns:
        int: 1 without `mpiexec`.
    Raises:
        DistributedError: If MPI is missing.
    Examples:
        >>> import fnad.distributed
        >>> fnad.distributed.size()  # mpiexec -n 2 python FILE  # doctest: +SKIP
        2
    """
    return _world().Get_size()


@boundary
def psum(tree: Any) -> Any:
    """The sum over all ranks, in the dtype of the argument; bools are counted.

    Parameters:
        tree (pytree of arrays and numbers): Equal in structure, dtypes and shapes on all ranks; bools become int64.
    Returns:
        pytree: The sums, equal on all ranks, with the shapes and dtypes of `tree`.
    Raises:
        DistributedError: If MPI is missing, or if the ranks differ in the line of the call, its dtypes or shapes.
        ArgumentTypeError: If a leaf is not an array or number.
    Examples:
        >>> import fnad.distributed
        >>> fnad.distributed.psum(fnad.distributed.rank() + 1.0)  # on two ranks  # doctest: +SKIP
        np.float64(3.0)
    """
    return _joined(partial(_sent, collectives.psum), tree)


@boundary
def pmean(tree: Any) -> Any:
    """The mean over all ranks.

    Parameters:
        tree (pytree of arrays and numbers): Equal in structure, dtypes and shapes on all ranks; bools become int64.
    Returns:
        pytree: The means, equal on all ranks, with the shapes of `tree`; float64 for bools and integers.
    Raises:
        DistributedError: If MPI is missing, or if the ranks differ in the line of the call, its dtypes or shapes.
        ArgumentTypeError: If a leaf is not an array or number.
    Examples:
        >>> import fnad.distributed
        >>> fnad.distributed.pmean(fnad.distributed.rank() + 1.0)  # on two ranks  # doctest: +SKIP
        np.float64(1.5)
    """
    return _joined(lambda x, key: _sent(collectives.psum, x, key) / size(), tree)


@boundary
def pmax(tree: Any) -> Any:
    """The maximum over all ranks, which is nan where one of them has nan.

    Parameters:
        tree (pytree of arrays and numbers): Equal in structure, dtypes and shapes on all ranks; bools become int64.
    Returns:
        pytree: The maxima, equal on all ranks, with the shapes and dtypes of `tree`.
    Raises:
        DistributedError: If MPI is missing, or if the ranks differ in the line of the call, its dtypes or shapes.
        ArgumentTypeError: If a leaf is not an array or number.
    Examples:
        >>> import fnad.distributed
        >>> fnad.distributed.pmax(fnad.distributed.rank() + 1.0)  # on two ranks  # doctest: +SKIP
        np.float64(2.0)
    """
    return _mapped(lambda x, key: np.max(_sent(collectives.all_gather, x, key), axis=0), tree)


@boundary
def all_gather(tree: Any) -> Any:
    """The arrays of all ranks in their order, along a new first axis.

    Parameters:
        tree (pytree of arrays and numbers): Equal in structure, dtypes and shapes on all ranks; bools become int64.
    Returns:
        pytree: Arrays of shape `(size(), *shape)`, equal on all ranks, with the dtypes of `tree`.
    Raises:
        DistributedError: If MPI is missing, or if the ranks differ in the line of the call, its dtypes or shapes.
        ArgumentTypeError: If a leaf is not an array or number.
    Examples:
        >>> import numpy as np, fnad.distributed
        >>> fnad.distributed.all_gather(np.full(3, fnad.distributed.rank()))  # on two ranks  # doctest: +SKIP
        array([[0, 0, 0],
               [1, 1, 1]])
    """
    return _mapped(partial(_sent, collectives.all_gather), tree)


@boundary
def reduce_scatter(tree: Any) -> Any:
    """The row of this rank in the sum over all ranks of arrays with a row for each rank.

    Parameters:
        tree (pytree of arrays): With `size()` rows, and equal in structure, dtypes and shapes on all ranks;
            bools become int64.
    Returns:
        pytree: The rows, without the first axis, with the dtypes of `tree`.
    Raises:
        DistributedError: If MPI is missing, or if the ranks differ in the line of the call, its dtypes or shapes.
        ShapeError: If the length of a first axis is not `size()`.
        ArgumentTypeError: If a leaf is not an array or number.
    Examples:
        >>> import numpy as np, fnad.distributed
        >>> fnad.distributed.reduce_scatter(np.array([1.0, 2.0]))  # on the second of two ranks  # doctest: +SKIP
        np.float64(4.0)
    """
    return _mapped(partial(_sent, collectives.reduce_scatter), tree)


@boundary
def broadcast(tree: Any, root: int = 0) -> Any:
    """The arrays of the rank `root`; those of other ranks give types alone.

    Parameters:
        tree (pytree of arrays and numbers): Equal in structure, dtypes and shapes on all ranks; bools become int64.
        root (int): The rank that sends.
    Returns:
        pytree: The leaves of `root`, equal on all ranks.
    Raises:
        DistributedError: If MPI is missing, if `root` is not a rank, or if the ranks differ in the line of the call,
            its dtypes, shapes or `root`.
        ArgumentTypeError: If a leaf is not an array or number.
    Examples:
        >>> import fnad.distributed
        >>> fnad.distributed.broadcast(fnad.distributed.rank() + 1.0, root=1)  # on two ranks  # doctest: +SKIP
        np.float64(2.0)
    """
    if not 0 <= root < size():
        what = f"there is no rank {root} among {size()}"
        raise DistributedError.here(what, remedy="ranks are counted from 0")
    return _joined(partial(_sent, collectives.broadcast, root=root), tree)


def run(f: Callable[..., T], *args: Any) -> T:
    """The result of `f(*args)`, where an error on one rank ends all ranks.

    Without it the other ranks wait for a rank that has ended.

    Parameters:
        f (function): The main function of each rank.
        *args: Its arguments.
    Returns:
        pytree: Its result.
    Raises:
        DistributedError: If MPI is missing.
    Examples:
        >>> import fnad.distributed
        >>> def main():
        ...     print(fnad.distributed.psum(1.0))
        >>> fnad.distributed.run(main)  # mpiexec -n 2 python FILE  # doctest: +SKIP
        2.0
        2.0
    """
    world = _world()
    try:
        result = f(*args)
        collectives.agree("the end of fnad.distributed.run")
    except BaseException:
        traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        if world.Get_size() > 1:
            time.sleep(0.3)  # mpiexec drops the output that it has not passed on when it ends the ranks
            world.Abort(1)
        raise
    return result


def _world() -> Any:
    """MPI's communicator of all ranks."""
    try:
        return collectives.mpi().COMM_WORLD
    except DistributedError as error:
        raise error.at(current_source()) from None


Collective: TypeAlias = Callable[[Any, str], Any]
"""A collective of an array, and of the key of the array in a pytree."""


def _mapped(collective: Collective, tree: Any) -> Any:
    """The pytree of the results of a collective for each leaf."""
    return _of_leaves(lambda values, keys: list(map(collective, values, keys)), tree)


def _joined(collective: Collective, tree: Any) -> Any:
    """The same for a collective that is elementwise, with one message for all short leaves of a dtype."""
    return _of_leaves(partial(_in_messages, collective), tree)


def _of_leaves(collective: Callable[[list[Any], list[str]], list[Any]], tree: Any) -> Any:
    leaves, structure = leaves_of((tree,), lambda _: "tree")
    keys = [".".join(map(str, path[1:])) for path in structure.paths()]
    if is_tracing():
        return structure.unflatten(collective([traced(strong(symbol(leaf))) for leaf in leaves], keys))[0]
    found = collective([leaf.value for leaf in leaves], keys)
    return structure.unflatten([to_user(np.asarray(value)) for value in found])[0]


SHORT = 2**14
"""The most elements of an array that it is faster to send with others than alone."""


def _in_messages(collective: Collective, values: list[Any], keys: list[str]) -> list[Any]:
    groups: dict[Any, list[int]] = {}
    for i, value in enumerate(values):
        groups.setdefault(value.dtype if value.size <= SHORT else i, []).append(i)
    found: dict[int, Any] = {}
    for group in groups.values():
        if len(group) == 1:
            (i,) = group
            found[i] = collective(values[i], keys[i])
            continue
        which = ", ".join(f"{keys[i]}{values[i].shape}" for i in group)
        total = collective(np.concatenate([np.ravel(values[i]) for i in group]), which)
        ends = np.cumsum([0, *(values[i].size for i in group)])
        found |= {i: total[a:b].reshape(values[i].shape) for i, a, b in zip(group, ends, ends[1:], strict=False)}
    return [found[i] for i in range(len(values))]


def _sent(collective: Primitive, x: Any, key: str, **root: int) -> Any:
    """The result of a collective: an equation of the trace under way, otherwise computed now."""
    source = current_source()
    site = "the program" if source is None else f"{Path(source.file).name}:{source.line}"
    site = f"{site} for {key if len(key) < 80 else hashlib.sha256(key.encode()).hexdigest()[:16]}" if key else site
    params: dict[str, Any] = {"ranks": size(), "site": site, **root}
    if is_tracing():
        current_builder().source = source
        operand = symbol_of(x)
        return traced(collective(convert_to(operand, I64) if operand.dtype == BOOL else operand, **params))
    array = x.astype(I64) if x.dtype == BOOL else x
    try:
        collective.infer(Aval(array.dtype, array.shape), **params)
        return collective.evaluate(array, **params)
    except FnadError as error:
        raise error.at(source) from None

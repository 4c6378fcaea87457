"""Functions of pytrees, with the names and arguments of `jax.tree`.

Containers are tuples, lists, dicts, named tuples and the classes registered with optree, under its namespace "fnad"
too; None is a container of nothing, and everything else a leaf. A dict keeps the order of its keys.

>>> import fnad
>>> fnad.tree.map(lambda p, g: p - 0.5 * g, {"w": 1.0, "b": [2.0]}, {"w": 2.0, "b": [4.0]})
{'w': 0.0, 'b': [0.0]}
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from fnad.api.staging.leaves import Structure, map_leaves, pytrees
from fnad.api.staging.leaves import flatten as _flatten
from fnad.trace.unknown import missing
from fnad.tracebacks import boundary
from fnad.upward import UPWARD

Test: TypeAlias = Callable[[Any], bool] | None
"""True if a container is taken as a leaf."""

Path: TypeAlias = tuple[Any, ...]
"""The path of a leaf: the keys of dicts, the positions in tuples and lists, the names of fields."""

_NO_INITIALIZER = object()

__all__ = [
    "all",
    "flatten",
    "flatten_with_path",
    "leaves",
    "leaves_with_path",
    "map",
    "map_with_path",
    "reduce",
    "structure",
    "transpose",
    "unflatten",
]


@boundary
def map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: Test = None) -> Any:  # noqa: A001 JAX's name
    """The pytree of `f` of each leaf, and of what the others, which have its structure, hold there.

    Parameters:
        f (function): It takes a leaf of each pytree.
        tree (pytree): Anything; a value that is not a container is one leaf.
        *rest (pytrees): They have the structure of `tree`, or more below its leaves.
        is_leaf (function, optional): True if a container is taken as a leaf.
    Returns:
        pytree: The structure of `tree`, with the results of `f`.
    Raises:
        ValueError: If a pytree of `rest` has another structure.
    Examples:
        >>> map(abs, (-1.0, {"a": -2.0}))
        (1.0, {'a': 2.0})
    """
    return map_leaves(UPWARD.callee(f), tree, *rest, is_leaf=is_leaf)


def leaves(tree: Any, is_leaf: Test = None) -> list[Any]:
    """The leaves, in order.

    Parameters:
        tree (pytree): Anything; a value that is not a container is one leaf.
        is_leaf (function, optional): True if a container is taken as a leaf.
    Returns:
        list: The leaves; empty for None.
    Examples:
        >>> leaves({"a": 1, "b": (2, None, [3])})
        [1, 2, 3]
    """
    return _flatten(tree, is_leaf)[0]


def structure(tree: Any, is_leaf: Test = None) -> Structure:
    """The structure: the containers without their leaves.

    Parameters:
        tree (pytree): Anything; a value that is not a container is one leaf.
        is_leaf (function, optional): True if a container is taken as a leaf.
    Returns:
        PyTreeSpec: It is hashable, and equal for equal structures.
    Examples:
        >>> structure((1, [2, 3])) == structure((0, [0, 0]))
        True
    """
    return _flatten(tree, is_leaf)[1]


@boundary
def flatten(tree: Any, is_leaf: Test = None) -> tuple[list[Any], Structure]:
    """The leaves and the structure, from which `unflatten` makes the pytree again.

    Parameters:
        tree (pytree): Anything; a value that is not a container is one leaf.
        is_leaf (function, optional): True if a container is taken as a leaf.
    Returns:
        tuple: The list of leaves, and the structure.
    Examples:
        >>> flatten((1, [2, 3]))[0]
        [1, 2, 3]
    """
    return _flatten(tree, is_leaf)


@boundary
def unflatten(treedef: Structure, leaves: Iterable[Any]) -> Any:
    """The pytree of this structure with these leaves.

    Parameters:
        treedef (PyTreeSpec): A result of `structure` or `flatten`.
        leaves (iterable): As many values as it has leaves.
    Returns:
        pytree: The containers with these leaves.
    Raises:
        ValueError: If the number of leaves is another one.
    Examples:
        >>> unflatten(structure((1, [2, 3])), "abc")
        ('a', ['b', 'c'])
    """
    return treedef.unflatten(leaves)


@boundary
def reduce(
    function: Callable[[Any, Any], Any], tree: Any, initializer: Any = _NO_INITIALIZER, is_leaf: Test = None
) -> Any:
    """The leaves combined from the left: `function(…function(function(initializer, leaf), leaf)…, leaf)`.

    Parameters:
        function (function): It takes the result so far and a leaf.
        tree (pytree): Anything; a value that is not a container is one leaf.
        initializer: The first result; by default the first leaf.
        is_leaf (function, optional): True if a container is taken as a leaf.
    Returns:
        object: The last result.
    Raises:
        TypeError: If there is neither a leaf nor an initializer.
    Examples:
        >>> reduce(lambda total, x: total + x, {"a": 1, "b": (2, 3)})
        6
    """
    given = () if initializer is _NO_INITIALIZER else (initializer,)
    return functools.reduce(UPWARD.callee(function), _flatten(tree, is_leaf)[0], *given)


def all(tree: Any, *, is_leaf: Test = None) -> bool:  # noqa: A001 JAX's name
    """True if all leaves are true.

    Parameters:
        tree (pytree): Anything; a value that is not a container is one leaf.
        is_leaf (function, optional): True if a container is taken as a leaf.
    Returns:
        bool: True for a pytree without leaves.
    Examples:
        >>> all({"a": True, "b": (1, 0)})
        False
    """
    return builtins.all(_flatten(tree, is_leaf)[0])


@boundary
def transpose(outer_treedef: Structure, inner_treedef: Structure, tree: Any) -> Any:
    """The pytree of the inner structure, with one of the outer structure at each leaf, from the other way round.

    Parameters:
        outer_treedef (PyTreeSpec): The structure of `tree`.
        inner_treedef (PyTreeSpec): The structure of each of its leaves.
        tree (pytree): Pytrees in a pytree.
    Returns:
        pytree: `inner_treedef` outside, `outer_treedef` inside.
    Raises:
        TypeError: If `tree` has another structure.
    Examples:
        >>> transpose(structure([0, 0]), structure({"x": 0, "y": 0}), [{"x": 1, "y": 2}, {"x": 3, "y": 4}])
        {'x': [1, 3], 'y': [2, 4]}
    """
    return pytrees().tree_transpose(outer_treedef, inner_treedef, tree)


# ---- with paths ------------------------------------------------------------------------------------------------------


def flatten_with_path(tree: Any, is_leaf: Test = None) -> tuple[list[tuple[Path, Any]], Structure]:
    """The leaves, each behind its path of keys, positions and names, and the structure.

    Parameters:
        tree (pytree): Anything; a value that is not a container is one leaf.
        is_leaf (function, optional): True if a container is taken as a leaf.
    Returns:
        tuple: The list of pairs (path, leaf), and the structure.
    Examples:
        >>> flatten_with_path({"a": (1, 2)})[0]
        [(('a', 0), 1), (('a', 1), 2)]
    """
    found, treedef = _flatten(tree, is_leaf)
    return list(zip(treedef.paths(), found, strict=True)), treedef


def leaves_with_path(tree: Any, is_leaf: Test = None) -> list[tuple[Path, Any]]:
    """The leaves, each behind its path of keys, positions and names.

    Parameters:
        tree (pytree): Anything; a value that is not a container is one leaf.
        is_leaf (function, optional): True if a container is taken as a leaf.
    Returns:
        list: Pairs (path, leaf); a path is a tuple.
    Examples:
        >>> leaves_with_path([3, {"b": 4}])
        [((0,), 3), ((1, 'b'), 4)]
    """
    return flatten_with_path(tree, is_leaf)[0]


@boundary
def map_with_path(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: Test = None) -> Any:
    """The pytree of `f` of the path and each leaf, and of what the others, which have its structure, hold there.

    Parameters:
        f (function): It takes a path and a leaf of each pytree.
        tree (pytree): Anything; a value that is not a container is one leaf.
        *rest (pytrees): They have the structure of `tree`, or more below its leaves.
        is_leaf (function, optional): True if a container is taken as a leaf.
    Returns:
        pytree: The structure of `tree`, with the results of `f`.
    Raises:
        ValueError: If a pytree of `rest` has another structure.
    Examples:
        >>> map_with_path(lambda path, x: (path[-1], x), {"a": 1.0})
        {'a': ('a', 1.0)}
    """
    values, structure = _flatten(tree, is_leaf)
    found = builtins.map(UPWARD.callee(f), structure.paths(), values, *builtins.map(structure.flatten_up_to, rest))
    return structure.unflatten(found)


if not TYPE_CHECKING:

    @boundary
    def __getattr__(name: str) -> NoReturn:
        raise missing("fnad.tree", name)

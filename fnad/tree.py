"""Functions of pytrees, with the names and arguments of `jax.tree`.

Containers are tuples, lists, dicts, named tuples and the classes registered with optree, under its namespace "fnad"
too; None is a container of nothing, and everything else a leaf. A dict keeps the order of its keys.

>>> import fnad
>>> fnad.tree.map(lambda p, g: p - 0.5 * g, {"w": 1.0, "b": [2.0]}, {"w": 2.0, "b": [4.0]})
{'w': 0.0, 'b': [0.0]}
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from fnad.api.staging.leaves import Structure, of_trees, pytrees
from fnad.trace.missing import missing
from fnad.tracebacks import boundary

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

    >>> map(abs, (-1.0, {"a": -2.0}))
    (1.0, {'a': 2.0})
    """
    return of_trees("tree_map", f, tree, *rest, is_leaf=is_leaf)


def leaves(tree: Any, is_leaf: Test = None) -> list[Any]:
    """The leaves, in order.

    >>> leaves({"a": 1, "b": (2, None, [3])})
    [1, 2, 3]
    """
    return of_trees("tree_leaves", tree, is_leaf=is_leaf)


def structure(tree: Any, is_leaf: Test = None) -> Structure:
    """The structure: the containers without their leaves.

    >>> structure((1, [2, 3])) == structure((0, [0, 0]))
    True
    """
    return of_trees("tree_structure", tree, is_leaf=is_leaf)


@boundary
def flatten(tree: Any, is_leaf: Test = None) -> tuple[list[Any], Structure]:
    """The leaves and the structure, from which `unflatten` makes the pytree again.

    >>> flatten((1, [2, 3]))[0]
    [1, 2, 3]
    """
    return of_trees("tree_flatten", tree, is_leaf=is_leaf)


@boundary
def unflatten(treedef: Structure, leaves: Iterable[Any]) -> Any:
    """The pytree of this structure with these leaves.

    >>> unflatten(structure((1, [2, 3])), "abc")
    ('a', ['b', 'c'])
    """
    return treedef.unflatten(leaves)


@boundary
def reduce(
    function: Callable[[Any, Any], Any], tree: Any, initializer: Any = _NO_INITIALIZER, is_leaf: Test = None
) -> Any:
    """`function(…function(function(initializer, leaf), leaf)…, leaf)`, without an initializer from the first leaf on.

    >>> reduce(lambda total, x: total + x, {"a": 1, "b": (2, 3)})
    6
    """
    given = () if initializer is _NO_INITIALIZER else (initializer,)
    return of_trees("tree_reduce", function, tree, *given, is_leaf=is_leaf)


def all(tree: Any, *, is_leaf: Test = None) -> bool:  # noqa: A001 JAX's name
    """True if all leaves are true.

    >>> all({"a": True, "b": (1, 0)})
    False
    """
    return of_trees("tree_all", tree, is_leaf=is_leaf)


@boundary
def transpose(outer_treedef: Structure, inner_treedef: Structure, tree: Any) -> Any:
    """The pytree of the inner structure, with one of the outer structure at each leaf, from the other way round.

    >>> transpose(structure([0, 0]), structure({"x": 0, "y": 0}), [{"x": 1, "y": 2}, {"x": 3, "y": 4}])
    {'x': [1, 3], 'y': [2, 4]}
    """
    return pytrees().tree_transpose(outer_treedef, inner_treedef, tree)


# ---- with paths ------------------------------------------------------------------------------------------------------


def flatten_with_path(tree: Any, is_leaf: Test = None) -> tuple[list[tuple[Path, Any]], Structure]:
    """The leaves, each behind its path of keys, positions and names, and the structure.

    >>> flatten_with_path({"a": (1, 2)})[0]
    [(('a', 0), 1), (('a', 1), 2)]
    """
    paths, found, treedef = of_trees("tree_flatten_with_path", tree, is_leaf=is_leaf)
    return list(zip(paths, found, strict=True)), treedef


def leaves_with_path(tree: Any, is_leaf: Test = None) -> list[tuple[Path, Any]]:
    """The leaves, each behind its path of keys, positions and names.

    >>> leaves_with_path([3, {"b": 4}])
    [((0,), 3), ((1, 'b'), 4)]
    """
    return flatten_with_path(tree, is_leaf)[0]


@boundary
def map_with_path(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: Test = None) -> Any:
    """The pytree of `f` of the path and each leaf, and of what the others, which have its structure, hold there.

    >>> map_with_path(lambda path, x: (path[-1], x), {"a": 1.0})
    {'a': ('a', 1.0)}
    """
    return of_trees("tree_map_with_path", f, tree, *rest, is_leaf=is_leaf)


if not TYPE_CHECKING:

    @boundary
    def __getattr__(name: str) -> NoReturn:
        raise missing("fnad.tree", name)

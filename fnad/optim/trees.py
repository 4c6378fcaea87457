"""Pytrees that belong together: gradients, state and parameters, leaf by leaf."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from fnad.api.staging.leaves import (
    Leaf,
    LeafError,
    flatten,
    leaf_of,
    leaves_of,
    map_leaves,
    of_trees,
    path,
    structure_text,
)
from fnad.errors import UpdateError
from fnad.trace.source import current_source

Tree: TypeAlias = Any
"""A pytree of arrays and numbers."""

REMEDIES = ("keep integers and bools apart from the parameters", "make its real and its imaginary part two parameters")


def filled_like(parameters: Tree, value: float) -> Tree:
    """An array of this value for each parameter, as an initial state; raises for a parameter that cannot be updated."""
    leaves, _ = leaves_of((parameters,), lambda _: "params")
    for i, leaf in enumerate(leaves):
        if leaf.aval.dtype.kind != "f":
            raise UpdateError.here(
                f"{path((parameters,), i, lambda _: 'params')} is {leaf.aval}, where a parameter is real",
                remedy=REMEDIES[leaf.aval.dtype.kind == "c"],
            )
    return map_leaves(lambda p: np.full_like(p, value), parameters)


def check_like(tree: Tree, name: str, parameters: Tree) -> None:
    """Raise `UpdateError` if a pytree differs from the parameters in structure, shape or dtype.

    A Python number may stand for a 0-d array.
    """
    values, structure = flatten(tree)
    wanted, wanted_structure = flatten(parameters)
    if structure != wanted_structure:
        check_structure(tree, name, parameters)
        values = wanted_structure.flatten_up_to(tree)
        tree = wanted_structure.unflatten(values)
    for i, (value, like) in enumerate(zip(values, wanted, strict=True)):
        try:
            _check_leaf(leaf_of(value), leaf_of(like))
        except LeafError as error:
            raise error.at(path((tree,), i, lambda _: name), current_source()) from None


def _check_leaf(leaf: Leaf, like: Leaf) -> None:
    if like.aval.dtype.kind != "f":
        what = f"belongs to a parameter {like.aval}, where a parameter is real"
        raise LeafError(UpdateError, what, REMEDIES[like.aval.dtype.kind == "c"])
    if leaf.aval != like.aval and not (leaf.weak and leaf.aval.dtype.kind in "if" and not like.aval.shape):
        what = f"is {leaf.aval}, but its parameter {like.aval}"
        raise LeafError(UpdateError, what, "give it the shape and dtype of the parameter")


def check_structure(tree: Tree, name: str, parameters: Tree) -> None:
    """Raise `UpdateError` unless the two have the same containers, up to the order of their keys."""
    given, wanted = (flatten(each)[1] for each in (tree, parameters))
    if given <= wanted <= given:
        return
    ours, theirs = _paths(tree), _paths(parameters)
    if missing := [leaf for leaf in theirs if leaf not in ours]:
        what, remedy = f"{name}{missing[0]} is missing", f"the parameters have a leaf params{missing[0]}"
    elif extra := [leaf for leaf in ours if leaf not in theirs]:
        what, remedy = f"{name}{extra[0]} belongs to no parameter", f"the parameters have no leaf params{extra[0]}"
    else:
        what = f"the structure of {name} is {structure_text(given)}, that of the parameters {structure_text(wanted)}"
        remedy = "give both the same containers"
    raise UpdateError.here(what, remedy=remedy)


def _paths(tree: Tree) -> list[str]:
    return [accessor.codify("") for accessor in of_trees("tree_accessors", tree)]

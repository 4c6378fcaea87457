"""Dataclasses as pytrees: instances become containers of their attributes when the first one of a class is met.

Arrays, numbers, containers and other dataclasses are their children; any other attribute, a name or a function, belongs
to the structure, where it is compared by `==`. A new instance has the attributes of the old one, with other children;
`__init__` is not called. A class that is registered with optree by its author is a pytree as that says.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from fnad.errors import ArgumentTypeError
from fnad.trace.recording import note_attributes
from fnad.trace.tracer import Tracer

NAMESPACE = "fnad"
"""The optree namespace in which containers are registered for fnad alone."""

FIELDS = "__dataclass_fields__"
"""The attribute of classes that are dataclasses."""

CHILDREN = (np.ndarray, np.generic, Tracer, bool, int, float, complex, tuple, list, dict)


class Attributes(NamedTuple):
    """The attributes of an instance besides the children of these names."""

    names: tuple[str, ...]
    constants: tuple[tuple[str, Any], ...]


def are_records(values: Iterable[Any], optree: Any) -> bool:
    """True if there are dataclasses among leaves that are not containers yet; from now on these are."""
    kinds: dict[int, type] = {}
    kind: type = type(None)
    for value in values:
        if type(value) is kind:  # as most leaves are
            continue
        kind = type(value)
        if hasattr(kind, FIELDS) and _is_record(kind) and optree.tree_is_leaf(value, namespace=NAMESPACE):
            kinds[id(kind)] = kind
    for kind in kinds.values():
        optree.register_pytree_node(
            kind,
            partial(_parts, optree),
            partial(_made, kind),
            path_entry_type=optree.GetAttrEntry,
            namespace=NAMESPACE,
        )
    return bool(kinds)


def _is_record(kind: type) -> bool:
    """True for dataclasses, except those that no table of classes takes, because their metaclass has no hash."""
    return dataclasses.is_dataclass(kind) and type(kind).__hash__ is not None


def _parts(optree: Any, value: Any) -> tuple[list[Any], Attributes, tuple[str, ...]]:
    fields = [field.name for field in dataclasses.fields(value) if hasattr(value, field.name)]
    held = {name: getattr(value, name) for name in fields} | getattr(value, "__dict__", {})
    note_attributes(value)
    names = tuple(name for name, part in held.items() if _is_child(part, optree))
    constants = tuple((name, _constant(value, name, part)) for name, part in held.items() if name not in names)
    return [held[name] for name in names], Attributes(names, constants), names


def _is_child(part: Any, optree: Any) -> bool:
    kind = type(part)
    if isinstance(part, CHILDREN) or _is_record(kind) or hasattr(kind, "to_numpy"):
        return True
    return (hasattr(kind, "shape") and hasattr(kind, "dtype")) or not optree.tree_is_leaf(part, namespace=NAMESPACE)


def _constant(owner: Any, name: str, part: Any) -> Any:
    try:
        hash(part)
    except TypeError:
        raise ArgumentTypeError.here(
            f"{type(owner).__qualname__}.{name} is of type {type(part).__qualname__}, neither an array nor hashable",
            remedy="make it a tuple or a frozenset, or register the class with optree",
        ) from None
    return part


def _made(kind: type[Any], attributes: Attributes, children: Iterable[Any]) -> Any:
    value = object.__new__(kind)
    for name, part in (*attributes.constants, *zip(attributes.names, children, strict=True)):
        object.__setattr__(value, name, part)
    return value

"""Arguments, and parts of them, that are selected by name: `wrt="params.w"`.

A function of selected parts takes these first, then all arguments of the function, and puts the parts in their places:
a transform with `argnums` then does the rest. A name is that of an argument, followed by keys of dicts, positions in
sequences and names of attributes, with dots between them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any, TypeAlias

from fnad.api.staging.dataclass_trees import are_records
from fnad.api.staging.leaves import NAMESPACE, Function, NamedArguments, function_name, pytrees, type_name
from fnad.errors import ArgnumsError
from fnad.trace.hooks import callee

Names: TypeAlias = str | Sequence[str] | None
"""The names of arguments or of parts of them, if they are selected by name."""

POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Selected(NamedArguments):
    """The function `f` of the parts with these names, all positional arguments, and all by keyword."""

    def __init__(self, f: Function, names: Sequence[str]) -> None:
        update_wrapper(self, f)
        self._f, self.argument_names = f, (*names, "args", "kwargs")
        self._steps = [name.split(".") for name in names]
        for steps in self._steps:
            if sum(steps[: len(other)] == other for other in self._steps) > 1:
                raise _wrong(
                    ".".join(steps), f"which {function_name(f)} would be differentiated in twice", "name it once"
                )
        parameters = _parameters(f)
        self._positions = [parameters.index(steps[0]) if steps[0] in parameters else None for steps in self._steps]

    def given(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """The arguments of this function from those of `f`."""
        parts = [_part((args, kwargs), self._path(i, args, kwargs), name) for i, name in enumerate(self._names)]
        return (*parts, args, kwargs)

    def __call__(self, *given: Any) -> Any:
        *parts, args, kwargs = given
        everything = args, kwargs
        for i, part in enumerate(parts):
            everything = _with_part(everything, self._path(i, args, kwargs), part)
        args, kwargs = everything
        return callee(self._f)(*args, **kwargs)

    @property
    def _names(self) -> Sequence[str]:
        return self.argument_names[:-2]

    def _path(self, i: int, args: Sequence[Any], kwargs: dict[str, Any]) -> list[str]:
        """The steps from all arguments to a part."""
        position, (first, *others) = self._positions[i], self._steps[i]
        if position is not None and position < len(args):
            return ["0", str(position), *others]
        if first in kwargs:
            return ["1", first, *others]
        of = function_name(self._f)
        raise _wrong(self._names[i], f"and {of} was called without {first}", f"pass it to {of}, by position or by name")


def by_name(transform: Function, f: Function, names: str | Sequence[str], options: dict[str, Any]) -> Function:
    """The transform of a function with respect to the arguments, or parts of them, with these names."""
    several = (names,) if isinstance(names, str) else tuple(names)
    selected = Selected(f, several)
    derived = transform(selected, 0 if isinstance(names, str) else tuple(range(len(several))), **options)
    return lambda *args, **kwargs: derived(*selected.given(args, kwargs))


def selected(f: Function, names: Names, primals: Sequence[Any]) -> tuple[Function, Sequence[Any], int]:
    """The function, its arguments with those to differentiate first, and the number of these: those named, or all."""
    if names is None:
        return f, primals, len(primals)
    check_names(names)
    of_parts = Selected(f, (names,) if isinstance(names, str) else tuple(names))
    given = of_parts.given(tuple(primals), {})
    return of_parts, given, len(given) - 2


def check_names(names: object) -> None:
    """Raise `ArgnumsError` unless names are a string or a sequence of strings."""
    several = names if isinstance(names, (tuple, list)) and names else (names,)
    if not all(isinstance(name, str) and all(name.split(".")) for name in several):
        what, remedy = f"the names of arguments are {names!r}", 'write wrt="w", wrt="params.w" or a tuple of such names'
        raise ArgnumsError.here(what, remedy=remedy)


def _parameters(f: Function) -> list[str]:
    """The names of the positional parameters; none where they are not known."""
    try:
        parameters = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):
        return []
    return [parameter.name for parameter in parameters if parameter.kind in POSITIONAL]


# ---- parts of pytrees ------------------------------------------------------------------------------------------------


def _part(tree: Any, path: Sequence[str], name: str) -> Any:
    for step in path:
        children, keys, _ = _opened(tree)
        if step not in keys:
            has = f"it has {', '.join(keys)}" if keys else f"it is of type {type_name(tree)}, which is not a container"
            raise _wrong(name, f"where there is no {step}", has)
        tree = children[keys.index(step)]
    return tree


def _with_part(tree: Any, path: Sequence[str], part: Any) -> Any:
    """The pytree with another part at the end of a path; what it has beside the path are the same objects."""
    if not path:
        return part
    children, keys, made = _opened(tree)
    i = keys.index(path[0])
    return made([*children[:i], _with_part(children[i], path[1:], part), *children[i + 1 :]])


def _opened(tree: Any) -> tuple[list[Any], list[str], Callable[[list[Any]], Any]]:
    """The children of a container, what they are called, and the function that makes it of other children."""
    optree = pytrees()
    if optree.tree_is_leaf(tree, namespace=NAMESPACE) and not are_records((tree,), optree):
        return [], [], lambda _: tree
    node = optree.tree_flatten_one_level(tree, namespace=NAMESPACE)
    children = list(node.children)
    return children, _keys(tree, children, node.entries), lambda found: node.unflatten_func(node.metadata, found)


def _keys(tree: Any, children: Sequence[Any], entries: Sequence[Any]) -> list[str]:
    """The keys of a container; of one that has positions alone, the names of fields and attributes."""
    if isinstance(tree, tuple):
        return list(map(str, getattr(tree, "_fields", entries)))
    attributes = getattr(tree, "__dict__", {}).items()

    def key(entry: Any, child: Any) -> str:
        names = [name for name, value in attributes if value is child] if isinstance(entry, int) else []
        return names[0] if len(names) == 1 else str(entry)

    return list(map(key, entries, children))


def _wrong(name: str, why: str, remedy: str) -> ArgnumsError:
    return ArgnumsError.here(f"{name} is selected, {why}", remedy=remedy)

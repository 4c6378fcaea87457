"""Functions of arrays of few dimensions, applied over all others: `vectorize`."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any, cast

import numpy as np

from fnad.api.functions.vmap import vmap
from fnad.api.running.transformed import Transformed, with_options
from fnad.api.staging.leaves import Function, check_function, flatten, function_name, map_leaves, source_of
from fnad.errors import ShapeError, SignatureError
from fnad.trace.hooks import callee
from fnad.trace.tracer import Tracer

Dims = tuple[str, ...]
"""The names of the axes, or their sizes as text, that a function takes or returns."""

DIMENSIONS = r"\((?:\w+(?:,\w+)*)?\)"
SIGNATURE = re.compile(rf"({DIMENSIONS}(?:,{DIMENSIONS})*)?->({DIMENSIONS}(?:,{DIMENSIONS})*)")


@with_options
def vectorize(f: Function, excluded: Collection[int] = (), signature: str | None = None) -> Transformed:
    """The function that applies `f` to all elements, or subarrays, of its arguments, as `np.vectorize` does.

    Each axis is one `vmap`, so that the result is one program, which compiles and has derivatives.

    Parameters:
        f (function): Takes and returns pytrees of arrays and numbers.
        excluded (collection of ints): Positions of arguments that `f` receives as they are, like arguments by name.
        signature (str, optional): The last axes that `f` takes and returns, as in "(m,n),(n)->(m)"; all other axes
            broadcast. Without it, `f` takes and returns numbers.
    Returns:
        function: Takes arrays that broadcast, and returns arrays of their broadcast shape.
    Raises:
        SignatureError: If the signature is malformed, or does not fit `f`.
        ShapeError: If the arguments do not fit the signature.
        TracerEscapeError: As in `vmap`.
    Examples:
        >>> import numpy as np, fnad
        >>> distance = fnad.vectorize(lambda x, y: np.sqrt(np.sum((x - y) ** 2)), signature="(n),(n)->()")
        >>> distance(np.zeros((2, 1, 3)), np.ones((4, 3))).shape
        (2, 4)
    """
    check_function(f, "vectorize")
    parsed = None if signature is None else _parsed(signature)

    def vectorized_f(*args: Any, **kwargs: Any) -> Any:
        places = [i for i in range(len(args)) if i not in excluded]
        inputs, outputs = parsed or (((),) * len(places), None)
        if len(inputs) != len(places):
            raise SignatureError.here(
                f"the signature {signature} of {function_name(f)} has {len(inputs)} arguments, which are {len(places)}",
                remedy="give one group of axes for each, or name the positions of others in excluded=",
            )
        given = [_array(args[i]) for i in places]
        sizes: dict[str, int] = {}
        outer = [_outer(x, dims, sizes, f) for x, dims in zip(given, inputs, strict=True)]

        def core(*arrays: Any) -> Any:
            whole = list(args)
            for place, array in zip(places, arrays, strict=True):
                whole[place] = array
            result = callee(f)(*whole, **kwargs)
            _check_result(result, outputs, sizes, f)
            return result

        return _over(core, given, outer)

    return cast("Transformed", vectorized_f)  # `with_options` makes it one


def _parsed(signature: str) -> tuple[tuple[Dims, ...], tuple[Dims, ...]]:
    match = SIGNATURE.fullmatch(signature.replace(" ", ""))
    if match is None:
        raise SignatureError.here(
            f"{signature!r} is no signature of a function of arrays",
            remedy='name the axes of its arguments and results, as in "(m,n),(n)->(m)", and () for a number',
        )
    inputs, outputs = (tuple(map(_dims, re.findall(DIMENSIONS, part or ""))) for part in match.groups())
    return inputs, outputs


def _dims(text: str) -> Dims:
    return tuple(filter(None, text.strip("()").split(",")))


def _array(value: Any) -> Any:
    return value if isinstance(value, Tracer) else np.asarray(value)


def _outer(x: Any, dims: Dims, sizes: dict[str, int], f: Function) -> tuple[int, ...]:
    """The shape without the axes that the function takes, whose sizes have to be the same under one name."""
    shape = np.shape(x)
    cut = len(shape) - len(dims)
    if cut < 0:
        raise _unfit(f, f"an argument of shape {shape} has no axes {_text(dims)}")
    for name, size in zip(dims, shape[cut:], strict=True):
        if size != (int(name) if name.isdecimal() else sizes.setdefault(name, size)):
            raise _unfit(f, f"axis {name} has {size} elements in an argument, and {sizes.get(name, name)} elsewhere")
    return shape[:cut]


def _check_result(result: Any, outputs: tuple[Dims, ...] | None, sizes: dict[str, int], f: Function) -> None:
    """Raise `SignatureError` unless the results have the axes that the signature says, or are numbers without one."""
    shapes = [np.shape(leaf) for leaf in flatten(result)[0]]
    wanted = ((),) * len(shapes) if outputs is None else outputs
    known = dict(sizes)
    fits = len(shapes) == len(wanted) and all(
        len(shape) == len(dims) and all(known.setdefault(n, k) == k for n, k in zip(dims, shape, strict=True))
        for shape, dims in zip(shapes, wanted, strict=True)
    )
    if not fits:
        said = "numbers" if outputs is None else ",".join(map(_text, outputs))
        raise SignatureError(
            f"{function_name(f)} returned {', '.join(map(str, shapes))} where its signature says {said}",
            source=source_of(f),
            remedy="name the axes of its results in signature=, after ->",
        )


def _over(core: Function, given: Sequence[Any], outer: Sequence[tuple[int, ...]]) -> Any:
    """`core` applied along the axes in front of its own, which broadcast; one of size 1 everywhere is put in again."""
    try:
        shape = np.broadcast_shapes(*outer)
    except ValueError as error:
        raise ShapeError.here(str(error), remedy="give arguments whose first axes broadcast") from None
    has = [[False] * (len(shape) - len(own)) + [size != 1 for size in own] for own in outer]
    squeezed = [_squeezed(x, own) for x, own in zip(given, outer, strict=True)]
    mapped = core
    for axis in reversed(range(len(shape))):
        axes = tuple(0 if own[axis] else None for own in has)
        if any(a is not None for a in axes):
            mapped = vmap(mapped, in_axes=axes)
    ones = tuple(axis for axis in range(len(shape)) if not any(own[axis] for own in has))
    result = mapped(*squeezed)
    return map_leaves(lambda x: np.expand_dims(x, ones), result) if ones else result


def _squeezed(x: Any, outer: tuple[int, ...]) -> Any:
    return np.reshape(x, (*[n for n in outer if n != 1], *np.shape(x)[len(outer) :])) if 1 in outer else x


def _text(dims: Dims) -> str:
    return f"({','.join(dims)})"


def _unfit(f: Function, what: str) -> ShapeError:
    remedy = "check it against the signature; axes in front of those that it names broadcast"
    return ShapeError.here(f"{function_name(f)} is vectorized, and {what}", remedy=remedy)

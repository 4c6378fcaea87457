"""`callback`: a function of the host, called when the program comes to it.

It is an effect: it happens once for each time the program passes, in the order of the program, whether or not its
results are used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count
from typing import Any, Self, TypeAlias

import numpy as np

from fnad.errors import CallbackError
from fnad.ir.axes import Opaque
from fnad.ir.primitive import HOST, Library, Sample, Unknown
from fnad.ir.types import Aval, Dtype, Shape
from fnad.ops.constructors import primitive

Results: TypeAlias = tuple[tuple[Dtype, Shape], ...]

_NUMBERS = count(1)


class Host(int):
    """A function of the host as a static value: a number that no other has, with the function that goes by it."""

    function: Callable[..., Any] | None = None
    name = "the function"

    @classmethod
    def of(cls, function: Callable[..., Any], name: str = "the function") -> Self:
        """A new number for a function that takes and returns sequences of arrays; errors call it `name`."""
        host = cls(next(_NUMBERS))
        host.function, host.name = function, name
        return host


def _infer(*operands: Aval, host: int, results: Results) -> tuple[Aval, ...]:
    return tuple(Aval(dtype, shape) for dtype, shape in results)


def _no_derivative(host: int, results: Results) -> CallbackError:
    name = host.name if isinstance(host, Host) else Host.name
    return CallbackError(
        f"the result of fnad.callback is differentiated, and the derivative of {name} is not known",
        remedy="call it by fnad.external or fnad.custom_vjp, which take its derivative, or give the call "
        "fnad.stop_gradient(x) for its arguments",
    )


def _samples() -> Iterable[Sample]:
    """A function that doubles, and one that returns nothing."""
    x = np.array([1.0, 2.0])
    yield Sample((x,), {"host": Host.of(lambda v: (v * 2,)), "results": ((x.dtype, (2,)),)}, smooth=False)
    yield Sample((x,), {"host": Host.of(lambda _: ()), "results": ()}, smooth=False)


@primitive(
    _infer,
    Unknown(_no_derivative),
    Library(HOST),
    _samples,
    effect=True,
    axes=Opaque("a function of the host takes the arrays it was written for"),
)
def callback(*operands: Any, host: int, results: Results) -> Any:
    """A function of the host, called in the order of the program."""
    function = host.function if isinstance(host, Host) else None
    if function is None:
        raise CallbackError(
            f"the function of callback {host} is not there",
            remedy="a text of a program has no functions: trace the program anew",
        )
    found = [np.asarray(value) for value in function(*[np.array(operand) for operand in operands])]
    for value, (dtype, shape) in zip(found, results, strict=True):
        if (value.dtype, value.shape) != (dtype, shape):
            raise CallbackError(
                f"a callback returned {value.dtype} of shape {value.shape}, announced was {dtype} of shape {shape}",
                remedy="return what `result` says, in dtype and shape",
            )
    return tuple(found)

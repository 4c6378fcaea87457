"""What an array holds after something is stored into it."""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.errors import DtypeError, ShapeError
from fnad.ir.symbol import Symbol
from fnad.ir.types import Aval, Dtype, Shape
from fnad.numpy.operands import as_symbol, to_dtype
from fnad.ops.comparison import select
from fnad.ops.shape import broadcast_to, reshape_to


def stored(name: str, value: Any, out: Any, where: Any = True, casting: Any = "same_kind") -> Symbol:
    """Return what `out` holds after the result `value` of the function `name` is stored into it, where `where` says."""
    symbol = as_symbol(value)
    check_cast(name, symbol.dtype, out.dtype, casting)
    check_fits(symbol.shape, out.shape)
    new = broadcast_to(to_dtype(symbol, out.dtype), out.shape)
    if where is True:
        return new
    return select(broadcast_to(as_symbol(where, np.dtype(bool)), out.shape), new, as_symbol(out))


def check_cast(name: str, source: Dtype, target: Dtype, casting: Any = "same_kind") -> None:
    """Raise as NumPy where a result may not be stored into an array of this dtype."""
    if not np.can_cast(source, target, casting):
        raise DtypeError(
            f"Cannot cast {name} output from {source!r} to {target!r} with casting rule {casting!r}",
            remedy="convert it with astype, or make the array of the wider dtype",
        )


def check_fits(source: Shape, target: Shape) -> None:
    """Raise as NumPy where a value does not broadcast to the shape it is stored into."""
    fits = len(source) <= len(target) and all(
        n in (1, m) for n, m in zip(reversed(source), reversed(target), strict=False)
    )
    if not fits:
        raise ShapeError(f"could not broadcast input array from shape {source} into shape {target}")


def fitted(value: Any, part: Aval) -> Symbol:
    """Return a value in the dtype and shape of the part it is written to."""
    symbol = as_symbol(value, part.dtype)
    extra = symbol.ndim - part.ndim
    if extra > 0 and all(n == 1 for n in symbol.shape[:extra]):
        symbol = reshape_to(symbol, symbol.shape[extra:])
    check_fits(symbol.shape, part.shape)
    return broadcast_to(symbol, part.shape)

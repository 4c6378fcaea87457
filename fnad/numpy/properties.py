"""What is known of an array while tracing: such functions answer with plain Python values."""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.ir.symbol import Symbol
from fnad.ir.types import Dtype, Shape, is_complex
from fnad.numpy.operands import as_symbol, axes_of, common_dtype, promotion_example, static_array
from fnad.numpy.registry import implements


@implements(np.shape)
def shape(a: Any) -> Shape:
    return as_symbol(a).shape


@implements(np.ndim)
def ndim(a: Any) -> int:
    return as_symbol(a).ndim


@implements(np.size)
def size(a: Any, axis: Any = None) -> int:
    x = as_symbol(a)
    return int(np.prod([x.shape[i] for i in axes_of(axis, x.ndim)], dtype=int))


@implements(np.result_type)
def result_type(*arrays_and_dtypes: Any) -> Dtype:
    return np.result_type(*[promotion_example(value) for value in arrays_and_dtypes])


@implements(np.common_type)
def common_type(*arrays: Any) -> type:
    return np.common_type(*[np.empty((), common_dtype(array)) for array in arrays])


@implements(np.can_cast)
def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    return np.can_cast(common_dtype(from_), to, casting)


@implements(np.iscomplexobj)
def iscomplexobj(x: Any) -> bool:
    return is_complex(as_symbol(x).dtype)


@implements(np.isrealobj)
def isrealobj(x: Any) -> bool:
    return not is_complex(as_symbol(x).dtype)


@implements(np.min_scalar_type)
def min_scalar_type(a: Any, /) -> Dtype:
    x = as_symbol(a)
    if x.ndim == 0:
        static_array(x)
    return x.dtype


@implements(np.einsum_path)
def einsum_path(*operands: Any, optimize: Any = "greedy", einsum_call: bool = False) -> Any:
    shapes = [np.broadcast_to(np.zeros((), o.dtype), o.shape) if isinstance(o, Symbol) else o for o in operands]
    return np.einsum_path(*shapes, optimize=optimize)

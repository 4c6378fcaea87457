"""Draws of whole arrays: the counters 0, 1, 2, … in the array's shape, through a primitive of `fnad.ops.random_bits`.

With ordinary keys and parameters NumPy computes them at once; with traced ones an equation is added, and compiled code
draws each element in the loop that uses it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fnad import draws
from fnad.ir.primitive import Primitive
from fnad.ir.symbol import Symbol
from fnad.ir.types import F64, Shape
from fnad.numpy.namespace import follows
from fnad.numpy.operands import as_symbol
from fnad.ops.conversion import convert_to
from fnad.ops.random_bits import U64, philox
from fnad.ops.shape import broadcast_to, iota, reshape_to
from fnad.random.parameters import Array


def _draw(primitive: Primitive, key: Any, shape: Shape, *parameters: Any, **params: Any) -> Symbol:
    counters = reshape_to(iota(dtype=U64, shape=(math.prod(shape),), axis=0), shape)
    operands = [as_symbol(key), *[as_symbol(parameter, F64) for parameter in parameters]]
    return primitive(counters, *[broadcast_to(operand, shape) for operand in operands], **params)


@follows(_draw)
def draw(primitive: Primitive, key: Array, shape: Shape, *parameters: Array, **params: Any) -> Array:
    """A draw of this shape, to which the f64 parameters broadcast."""
    counters = np.arange(math.prod(shape), dtype=U64).reshape(shape)
    operands = [key, *[np.asarray(parameter, F64) for parameter in parameters]]
    return primitive.evaluate(counters, *[np.broadcast_to(operand, shape) for operand in operands], **params)[()]


def words(key: Array, shape: Shape, stream: int = draws.DRAW) -> Array:
    """Random words of 64 bits, as u64."""
    return draw(philox, key, shape, stream=stream, half=0)


def _word_at(key: Any, index: Any, stream: int) -> Symbol:
    return philox(as_symbol(index), as_symbol(key), stream=stream, half=0)


@follows(_word_at)
def word_at(key: Array, index: Array, stream: int) -> Array:
    """The 64 random bits of one index, as u64 like the key."""
    return philox.evaluate(index, key, stream=stream, half=0)[()]


def _modulo(integers: Any) -> Symbol:
    return convert_to(as_symbol(integers), U64)


@follows(_modulo)
def modulo(integers: Array) -> Array:
    """Integers modulo 2**64, as u64."""
    return integers.astype(U64)[()]

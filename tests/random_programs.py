"""Random well-typed programs over all primitives, with arguments to run them on.

Everything is drawn from one `random.Random`, so that hypothesis can drive it (`st.randoms`) and shrink what fails.
Values are computed while a program grows: an equation whose result is not finite, or large, is not taken, so that
programs before and after a pass can be compared by numbers.

Params are drawn freely for primitives that move or reduce elements; others come with the params and the operands'
avals of one of their samples. Values are moved to such an aval by `adapt`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

import numpy as np
from hypothesis import strategies as st

from fnad.errors import FnadError, OutOfRangeError
from fnad.ir.builder import Builder
from fnad.ir.primitive import (
    PRIMITIVES,
    ArgFold,
    Cond,
    Cumulative,
    Fold,
    Library,
    NoFormula,
    Partials,
    Primitive,
    Sample,
    Scalar,
    ScanLoop,
)
from fnad.ir.program import Program, keywords
from fnad.ir.symbol import Symbol
from fnad.ir.types import DTYPES, Aval, Dtype, Shape, aval_of, is_inexact
from fnad.ops.conversion import convert, convert_to
from fnad.ops.shape import broadcast_to, reshape_to, slice_axis

LARGEST = 100.0
"""Values beyond it are not built on: their functions would soon overflow."""

HIGHEST_ORDER = 10**5
"""The highest order of a polynomial: SciPy's recurrences take one step for each."""

NUDGE, NEAR = 1e-5, 0.05
"""A result that moves by more than `NEAR` when its operands move by `NUDGE` is at a jump."""

SIZES = (1, 1, 1, 2, 2, 2, 3, 3, 3, 0)


@dataclass(frozen=True)
class Example:
    """A program and arguments for it."""

    program: Program
    arguments: list[Any]


# ---- avals, arrays and params ------------------------------------------------------------------------------------


def random_shape(random: Random, most: int = 3, sizes: Sequence[int] = SIZES) -> Shape:
    """Return a shape of at most so many axes."""
    return tuple(random.choice(sizes) for _ in range(random.randint(0, most)))


def random_array(random: Random, aval: Aval) -> Any:
    """Return an array of ordinary values: distinct, not too close to 0 and 1."""
    rng = np.random.default_rng(random.randrange(2**32))
    if aval.dtype.kind == "b":
        return rng.random(aval.shape) < 0.5
    if aval.dtype.kind in "iu":
        return rng.integers(0 if aval.dtype.kind == "u" else -9, 10, aval.shape).astype(aval.dtype)
    values = rng.uniform(-2, 2, aval.shape)
    return (values + 1j * rng.uniform(-2, 2, aval.shape) if aval.dtype.kind == "c" else values).astype(aval.dtype)


def random_axes(random: Random, ndim: int) -> tuple[int, ...]:
    return tuple(axis for axis in range(ndim) if random.random() < 0.5)


def factors(random: Random, size: int) -> Shape:
    """Return a random shape of this size."""
    if size == 0:
        return (0, random.choice(SIZES))
    shape: list[int] = []
    while size > 1:
        n = random.choice([d for d in range(2, size + 1) if size % d == 0])
        shape.append(n)
        size //= n
    for _ in range(random.randint(0, 1)):
        shape.insert(random.randint(0, len(shape)), 1)
    return tuple(shape)


def _broadcast_params(random: Random, x: Aval) -> dict[str, Any]:
    shape = [random.choice(SIZES) if n == 1 else n for n in x.shape]
    dims = list(range(x.ndim))
    for _ in range(random.randint(0, 2)):
        at = random.randint(0, len(shape))
        shape.insert(at, random.choice(SIZES))
        dims = [d + (d >= at) for d in dims]
    return {"shape": tuple(shape), "dims": tuple(dims)}


def _slice_params(random: Random, x: Aval) -> dict[str, Any]:
    whole = [random.random() < 0.3 for _ in x.shape]
    starts = tuple(0 if w else random.randint(0, n) for w, n in zip(whole, x.shape, strict=True))
    limits = tuple(n if w else random.randint(a, n) for w, a, n in zip(whole, starts, x.shape, strict=True))
    return {"starts": starts, "limits": limits, "strides": tuple(random.choice((1, 1, 2)) for _ in x.shape)}


def _pad_params(random: Random, x: Aval) -> dict[str, Any]:
    everywhere = random.random() < 0.5
    axis = random.randrange(max(x.ndim, 1))
    padded = [everywhere or a == axis for a in range(x.ndim)]
    low, high = (tuple(random.randint(0, 3) if p else 0 for p in padded) for _ in range(2))
    interior = tuple(random.choice((0, 1, 2)) if p and everywhere else 0 for p in padded)
    return {"low": low, "high": high, "interior": interior}


def _transpose_params(random: Random, x: Aval) -> dict[str, Any]:
    return {"permutation": tuple(random.sample(range(x.ndim), x.ndim))}


def _iota_params(random: Random) -> dict[str, Any]:
    shape = (*random_shape(random, 1), random.choice(SIZES))
    dtype = random.choice([dtype for dtype in DTYPES.values() if dtype.kind != "b"])
    return {"dtype": dtype, "shape": shape, "axis": random.randrange(len(shape))}


def _dot_params(random: Random, x: Aval, y: Aval) -> dict[str, Any]:
    pairs = [(i, j) for i in range(x.ndim) for j in range(y.ndim) if x.shape[i] == y.shape[j]]
    random.shuffle(pairs)
    matched: list[tuple[int, int]] = []
    for i, j in pairs:
        if all(i != a and j != b for a, b in matched):
            matched.append((i, j))
    kinds = [random.choice(("contract", "batch", None)) for _ in matched]
    chosen = {k: [pair for pair, kind in zip(matched, kinds, strict=True) if kind == k] for k in ("contract", "batch")}
    return {k: (tuple(i for i, _ in pairs), tuple(j for _, j in pairs)) for k, pairs in chosen.items()}


PARAMS: dict[str, Callable[..., dict[str, Any]]] = {
    "broadcast_in_dim": _broadcast_params,
    "reshape": lambda random, x: {"shape": factors(random, x.size)},
    "transpose": _transpose_params,
    "slice": _slice_params,
    "pad": _pad_params,
    "reverse": lambda random, x: {"axes": random_axes(random, x.ndim)},
    "concatenate": lambda random, *xs: {"axis": random.randrange(max(xs[0].ndim, 1))},
    "iota": _iota_params,
    "convert": lambda random, x: {"dtype": random.choice(list(DTYPES.values()))},
    "dot_general": _dot_params,
    "dynamic_slice": lambda random, x, *starts: {"sizes": tuple(random.randint(0, n) for n in x.shape)},
}
"""Params that fit operands of any aval, for primitives that take many."""


def random_params(random: Random, primitive: Primitive, avals: Sequence[Aval]) -> dict[str, Any]:
    """Return params for operands of these avals; they may not fit, which inference tells."""
    if primitive.name in PARAMS:
        return PARAMS[primitive.name](random, *avals)
    axis = random.randrange(max(avals[0].ndim, 1)) if avals else 0
    params = dict(random.choice(samples(primitive)).params)
    if isinstance(primitive.lower, Fold):
        params["axes"] = random_axes(random, avals[0].ndim)
    elif isinstance(primitive.lower, ArgFold | Cumulative):
        params["axis"] = axis
    return params


@cache
def samples(primitive: Primitive) -> list[Sample]:
    """Return the samples of a primitive."""
    return list(primitive.samples())


@cache
def signatures(primitive: Primitive) -> dict[tuple[Dtype, ...], Dtype]:
    """Return the dtypes of operands that a primitive takes, as its samples tell, with that of its first result."""
    found: dict[tuple[Dtype, ...], Dtype] = {}
    for sample in samples(primitive):
        avals = [aval_of(np.asarray(operand)) for operand in sample.operands]
        results = infer(primitive, avals, dict(sample.params), sample.regions)
        assert results is not None, f"{primitive} does not take its sample {avals}"
        found[tuple(aval.dtype for aval in avals)] = results[0].dtype
    return found


def takes_any_shape(primitive: Primitive) -> bool:
    """Say whether operands of any shapes (of one shape, where elementwise) go with `random_params`."""
    return primitive.name in PARAMS or isinstance(primitive.lower, Scalar | Fold | ArgFold | Cumulative)


def infer(
    primitive: Primitive, avals: Sequence[Aval], params: dict[str, Any], regions: tuple[Program, ...] = ()
) -> tuple[Aval, ...] | None:
    """Return the avals of the results, or None where the primitive does not take this."""
    try:
        inferred = primitive.infer(*avals, **keywords(params, regions))
    except FnadError:
        return None
    return inferred if isinstance(inferred, tuple) else (inferred,)


# ---- growing a program -------------------------------------------------------------------------------------------


class Growth:
    """A program under construction, with the value of everything in it."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.builder = Builder()
        self.arguments: list[Any] = []
        self.symbols: list[Symbol] = []
        self.values: dict[Any, Any] = {}

    def input(self, value: Any) -> Symbol:
        """Add an input that has this value."""
        value = np.asarray(value)
        symbol = self.builder.input(aval_of(value))
        self.arguments.append(value)
        return self._known(symbol, value)

    def literal(self, dtype: Dtype) -> Symbol:
        value = dtype.type(self.random.choice((0, 1, 2, 3)))
        return self._known(self.builder.literal(value), value)

    def _known(self, symbol: Symbol, value: Any) -> Symbol:
        self.symbols.append(symbol)
        self.values[symbol.atom] = value
        return symbol

    def pick(self, suits: Callable[[Aval], bool]) -> Symbol | None:
        """Return a value whose aval suits, a late one more likely than an early one."""
        found = [symbol for symbol in self.symbols if suits(symbol.aval)]
        return found[-1 - min(self.random.randrange(len(found)) for _ in range(2))] if found else None

    def bind(
        self,
        primitive: Primitive,
        operands: Sequence[Symbol],
        params: dict[str, Any],
        regions: tuple[Program, ...] = (),
    ) -> list[Symbol] | None:
        """Add an equation, unless its results are large or not finite, or left to the machine."""
        given = [self.values[operand.atom] for operand in operands]
        taken = infer(primitive, [operand.aval for operand in operands], params, regions)
        if taken is None or is_of_high_order(given) or (primitive is convert and wraps(given[0], params["dtype"])):
            return None
        try:
            with np.errstate(all="ignore"):
                out = primitive.evaluate(*given, **keywords(params, regions))
        except OutOfRangeError:
            return None
        values = out if isinstance(out, tuple) else (out,)
        if not all(is_ordinary(value) for value in values) or jumps(primitive, given, params, values[0]):
            return None
        bound = self.builder.bind(primitive, operands, params, regions)
        results = list(bound) if isinstance(bound, tuple) else [bound]
        return [self._known(result, np.asarray(value)) for result, value in zip(results, values, strict=True)]

    def grow(self, primitive: Primitive) -> list[Symbol] | None:
        """Add an equation of this primitive, if operands for it can be had."""
        return self._grow_freely(primitive) or self._grow_from_sample(primitive)

    def _grow_freely(self, primitive: Primitive) -> list[Symbol] | None:
        """Take operands that are there, as they are."""
        if not takes_any_shape(primitive):
            return None
        there = {symbol.dtype for symbol in self.symbols}
        dtypes = [signature for signature in signatures(primitive) if there.issuperset(signature)]
        operands = self._operands(self.random.choice(dtypes), isinstance(primitive.lower, Scalar)) if dtypes else None
        if operands is None:
            return None
        return self.bind(primitive, operands, random_params(self.random, primitive, [o.aval for o in operands]))

    def _operands(self, dtypes: Sequence[Dtype], one_shape: bool) -> list[Symbol] | None:
        operands: list[Symbol] = []
        shape: Shape | None = None
        for dtype in dtypes:
            found = self.pick(lambda aval: aval.dtype == dtype and shape in (None, aval.shape))  # noqa: B023 used now
            if found is None:
                return None
            operands.append(found)
            shape = found.shape if one_shape else None
        return operands

    def _grow_from_sample(self, primitive: Primitive) -> list[Symbol] | None:
        """Take the operands of a sample: floats are replaced by values that are there, moved to their avals."""
        sample = self.random.choice(samples(primitive))
        operands = [self._like(np.asarray(operand)) for operand in sample.operands]
        return self.bind(primitive, operands, dict(sample.params), sample.regions)

    def _like(self, operand: Any) -> Symbol:
        source = self.pick(lambda aval: is_inexact(aval.dtype) and aval.size > 0)
        if not is_inexact(operand.dtype) or source is None or self.random.random() < 0.3:
            return self.input(operand)
        return self._adapt(source, aval_of(operand))

    def _adapt(self, source: Symbol, aval: Aval) -> Symbol:
        with self.builder.active():
            symbol = adapt(source, aval)
        return self._known(symbol, adapted(self.values[source.atom], aval))

    def ends(self) -> list[Symbol]:
        """Return values to put out: some that nothing uses, and the last that can carry a derivative."""
        used = {atom for equation in self.builder.equations for atom in equation.operands}
        unused = [symbol for symbol in self.symbols if symbol.atom not in used]
        last = [symbol for symbol in self.symbols if is_inexact(symbol.dtype)][-1]
        return [last, *self.random.sample(unused, min(len(unused), self.random.randint(0, 3)))]

    def program(self, outputs: Sequence[Symbol]) -> Program:
        return self.builder.finish("random", outputs)


def is_ordinary(value: Any) -> bool:
    """Say whether a value is good to build on."""
    value = np.asarray(value)
    return value.dtype.kind not in "fc" or bool(np.all(np.isfinite(value)) and np.all(np.abs(value) <= LARGEST))


def wraps(value: Any, dtype: Dtype) -> bool:
    """Say whether a float would have to become an integer that the dtype does not have: each machine has its own."""
    integer = is_inexact(value.dtype) and dtype.kind in "iu"
    return integer and not np.all((np.real(value) > np.iinfo(dtype).min - 1) & (np.real(value) < np.iinfo(dtype).max))


def is_of_high_order(operands: Sequence[Any]) -> bool:
    """Say whether an integer beside floats is so large that SciPy's recurrences, of polynomials, take minutes."""
    high = any(x.dtype.kind in "iu" and np.any((x > HIGHEST_ORDER) | (x < -HIGHEST_ORDER)) for x in operands)
    return high and any(is_inexact(x.dtype) for x in operands)


def jumps(primitive: Primitive, operands: Sequence[Any], params: dict[str, Any], value: Any) -> bool:
    """Say whether an elementwise result is at a jump, where another rounding or sign of zero moves it far."""
    if not isinstance(primitive.lower, Scalar):
        return False
    for direction in (1 + 1j, 1 - 1j, -1 + 1j, -1 - 1j):
        with np.errstate(all="ignore"):
            moved = primitive.evaluate(*[nudged(operand, direction) for operand in operands], **params)
            near = np.abs(np.subtract(moved, value, dtype=np.complex128)) <= NEAR * (1 + np.abs(value))
        if not np.all(near):
            return True
    return False


def nudged(value: Any, direction: complex) -> Any:
    """Return a value moved a little, integers and bools aside."""
    if not is_inexact(value.dtype):
        return value
    step = direction if value.dtype.kind == "c" else direction.real
    return (value + NUDGE * (1 + np.abs(value)) * step).astype(value.dtype)


def adapt(x: Symbol, aval: Aval) -> Symbol:
    """Return elements of x, repeated or cut to another aval."""
    copies = -(-aval.size // x.aval.size)
    if copies > 1:
        x = broadcast_to(reshape_to(x, (1, x.aval.size)), (copies, x.aval.size))
    if x.aval.size != aval.size:
        x = slice_axis(reshape_to(x, (x.aval.size,)), 0, 0, aval.size)
    return convert_to(reshape_to(x, aval.shape), aval.dtype)


def adapted(value: Any, aval: Aval) -> Any:
    """Return the value of `adapt`."""
    found: Any = np.resize(value, aval.shape)
    with np.errstate(over="ignore"):  # single precision has no 1e300
        return (found.real if found.dtype.kind == "c" and aval.dtype.kind != "c" else found).astype(aval.dtype)


# ---- the strategy ------------------------------------------------------------------------------------------------


def random_example(random: Random, primitives: Sequence[Primitive], most: int) -> Example:
    """Return a program that grew by at most so many primitives, with at least one output of inexact dtype."""
    growth = Growth(random)
    shape = random_shape(random)
    for name in ("f64", *random.sample(("f64", "f64", "f32", "c128", "i64", "bool"), random.randint(0, 2))):
        growth.input(random_array(random, Aval(DTYPES[name], random.choice((shape, random_shape(random))))))
    for _ in range(random.randint(1, most)):
        if random.random() < 0.15:
            growth.literal(DTYPES[random.choice(("f64", "f32", "i64", "bool"))])
        growth.grow(random.choice(primitives))
    return Example(growth.program(growth.ends()), growth.arguments)


def is_open(primitive: Primitive) -> bool:
    """Say whether a primitive has a derivative, is no library call and ends on any operands.

    Passes do not look into such a call, which may also refuse a random operand, such as a singular matrix.
    """
    has_regions = any(sample.regions for sample in samples(primitive))
    if has_regions and not isinstance(primitive.lower, Cond | ScanLoop):
        return False  # loops whose length depends on values, and solvers, which fail for some
    partials = primitive.derivative.functions if isinstance(primitive.derivative, Partials) else ()
    return not isinstance(primitive.lower, Library) and not any(isinstance(f, NoFormula) for f in partials)


def examples(primitives: Iterable[Primitive] | None = None, most: int = 12) -> st.SearchStrategy[Example]:
    """Return the strategy of random programs over these primitives, by default all that passes and nests look into."""
    chosen = sorted(filter(is_open, PRIMITIVES.values()) if primitives is None else primitives, key=lambda p: p.name)
    return st.randoms(use_true_random=False).map(lambda random: random_example(random, chosen, most))

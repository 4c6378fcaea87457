"""The operands of NumPy functions: symbols for arguments, and the axes, shapes and counts, which must be known.

Arrays from outside are constants, lists of traced values are stacked.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import zip_longest
from typing import Any, TypeAlias, TypeGuard

import numpy as np

from fnad.errors import (
    ArgumentTypeError,
    AxisError,
    DomainError,
    DtypeError,
    IntegerRangeError,
    PlacementError,
    ShapeError,
    TracerEscapeError,
)
from fnad.ir.builder import current_builder
from fnad.ir.known import known_value
from fnad.ir.program import Literal
from fnad.ir.size import axis_sizes, computed, is_size, sizes_in
from fnad.ir.symbol import Symbol
from fnad.ir.types import BOOL, DTYPES, F64, I64, Dtype, Shape, dtype_name, is_inexact, native_dtype
from fnad.ops.arithmetic import add, mul
from fnad.ops.comparison import bitwise_and, ge, le, lt
from fnad.ops.conversion import convert_to, real
from fnad.ops.piecewise import trunc
from fnad.ops.shape import broadcast_to, concatenate, constant, number_of_size, reshape_to
from fnad.placement import adopted, is_on_device
from fnad.upward import UPWARD

Operand: TypeAlias = Any
"""A symbol, an array, a NumPy or Python number, or a nested list of these."""

F16 = np.dtype(np.float16)

PYTHON_DTYPES: dict[type, Dtype] = {bool: BOOL, int: I64, float: F64, complex: DTYPES["c128"]}
NUMBERS: tuple[type, ...] = tuple(PYTHON_DTYPES)
PYTHON_TYPES: dict[str, type] = {"b": bool, "i": int, "f": float, "c": complex}


CHOOSE = (
    "a mask and integers are known where the arguments are, not in the body of a loop or many rows of vmap, and floats "
    "never: choose with np.where(mask, a, b), reduce with where=mask, or pass the value in from outside"
)
"""The way out of what depends on a value that is not known."""


RAGGED = "give rows of one shape, or keep the list and compute with its rows: [np.sum(row) for row in rows]"


class WeakSymbol(Symbol):
    """A symbol that stands for a Python number: its dtype gives way to that of an array beside it (NEP 50)."""

    __slots__ = ()

    @property
    def python_type(self) -> type:
        return PYTHON_TYPES[self.aval.dtype.kind]


class HalfSymbol(Symbol):
    """A symbol that stands for float16: of numbers in float32 that are those of float16.

    What takes it, `OF_HALVES`, computes in float32 and rounds, as NumPy does.
    """

    __slots__ = ()


def as_weak(symbol: Symbol) -> WeakSymbol:
    """The symbol as one of a Python number, whose dtype gives way."""
    return WeakSymbol(symbol.builder, symbol.atom, symbol.aval)


def strong(symbol: Symbol) -> Symbol:
    """The symbol as one of a NumPy value, whose dtype does not give way."""
    return Symbol(symbol.builder, symbol.atom, symbol.aval) if type(symbol) is WeakSymbol else symbol


def is_python_number(value: Any) -> TypeGuard[bool | int | float | complex]:
    """True if the value is a Python number; one of a subclass does not give way, as np.float64 and members of enums."""
    return type(value) in NUMBERS or is_size(value)


def as_symbol(value: Operand, dtype: Dtype | None = None) -> Symbol:
    """The operand as a symbol, of this dtype if one is given.

    Raises `IntegerRangeError` where a Python integer does not fit the dtype; `DtypeError` for a dtype fnad does not
    have; `ArgumentTypeError` for what is no array at all.
    """
    if isinstance(value, Symbol):
        symbol = value
    elif isinstance(value, np.ndarray):
        symbol = current_builder().capture(value)
    elif isinstance(value, np.generic):
        symbol = current_builder().literal(value)
    elif isinstance(value, (bool, int, float, complex)):
        return python_literal(value, dtype)
    elif isinstance(value, (list, tuple)):
        symbol = stack_nested(value, dtype)
    elif is_on_device(value):
        symbol = current_builder().capture(_adopted(value))
    else:
        array = UPWARD.callee(value.__array__)() if hasattr(type(value), "__array__") else np.asarray(value)
        array = getattr(array, "symbol", array)  # of a handle, which the method of user code may return
        if array.dtype.kind not in "biufc":
            raise ArgumentTypeError(f"{type(value).__name__} is not an array or a number")
        symbol = as_symbol(array)
    return symbol if dtype is None else to_dtype(symbol, dtype)


def _adopted(value: Any) -> Any:
    """An array of a device, as programs take it."""
    try:
        array = adopted(value)
    except PlacementError as error:
        raise PlacementError(f"an array {error.what}", remedy=error.remedy) from None
    dtype_name(array.dtype)
    return array


def python_literal(value: Any, dtype: Dtype | None) -> Symbol:
    """A Python number as a constant of the dtype it takes beside other operands, by itself that of `np.asarray`."""
    if is_size(value):
        return _size_literal(value, dtype or I64)
    if dtype is None:
        found = np.asarray(value).dtype
        dtype = I64 if found.hasobject else found
    return current_builder().literal(_converted(dtype.type, value, dtype))


def _size_literal(value: Any, dtype: Dtype) -> Symbol:
    """A size that is a symbol as a number of a dtype; raises `ExportError` if the dtype cannot hold all sizes."""
    if dtype not in (I64, F64) and not is_inexact(dtype):
        operator.index(value)
    if (value.scope.sign(value.polynomial) or 0) > 0:
        return number_of_size(value, dtype)
    sizes = [number_of_size(n, I64) for n in axis_sizes(value)]
    return convert_to(computed(value, sizes, partial(constant, dtype=I64), add, mul), dtype)


def _converted(convert: Callable[[Any], Any], value: Any, dtype: Any) -> Any:
    """Python numbers in a dtype, as NumPy converts them; raises if the dtype cannot hold them."""
    try:
        return convert(value)
    except OverflowError as error:
        raise out_of_bounds(str(error), dtype) from None
    except TypeError:
        raise not_real(value, dtype) from None
    except ValueError as error:
        if isinstance(value, (list, tuple)):
            raise ShapeError(str(error), remedy=RAGGED) from None
        raise DomainError(str(error), remedy="give a finite number, or make the array one of floats") from None


def out_of_bounds(what: str, dtype: Dtype) -> IntegerRangeError:
    """The error for a Python number that an integer dtype does not have."""
    return IntegerRangeError(
        what, remedy=f"convert the array to a wider dtype, or give a number that fits {dtype_name(dtype)}"
    )


def not_real(what: Any, dtype: Dtype) -> ArgumentTypeError:
    """The error for a Python complex number in the place of a real one."""
    return ArgumentTypeError(f"{what} is not a real number, as {dtype} asks for", remedy="give its real part, z.real")


def to_dtype(symbol: Symbol, dtype: Dtype) -> Symbol:
    """Convert to a dtype, if it differs; a constant is converted now, and a Python number if the dtype has it."""
    if isinstance(symbol, WeakSymbol) and symbol.aval.dtype != dtype:
        _check_number(symbol, dtype)
    if symbol.aval.dtype.kind == "c" and dtype.kind not in "cb":
        warn_of_lost_parts()
    if isinstance(symbol.atom, Literal) and symbol.aval.dtype != dtype:
        return current_builder().literal(symbol.atom.value.astype(dtype))
    return convert_to(symbol, dtype)


def _check_number(number: WeakSymbol, dtype: Dtype) -> None:
    """Raise where a dtype does not have a Python number, as Python does: the number at hand decides the path."""
    kind = number.aval.dtype.kind
    if kind == "c" and dtype.kind not in "cb":
        raise not_real("a traced Python complex number", dtype)
    if kind not in "if" or dtype.kind not in "iu":
        return
    answer = _fits(number, dtype)
    if answer is not None and not answer:
        raise out_of_bounds(f"Python {number.python_type.__name__} out of bounds for {dtype}", dtype)
    if answer is None and kind == "i":
        raise DtypeError(
            f"a traced Python int may not fit {dtype_name(dtype)}",
            remedy=f"give it as a NumPy number, such as np.{dtype}(n), or keep it out of the arguments that are traced",
        )


def check_stored(number: Operand, dtype: Dtype) -> None:
    """Raise where NumPy does because a signed integer dtype does not have a NumPy number that is stored in it.

    Unsigned dtypes take the number modulo their size, and so does this package where no number is at hand.
    """
    source = number.aval.dtype if isinstance(number, Symbol) else np.asarray(number).dtype
    if dtype.kind != "i" or source.kind not in "iufc" or np.can_cast(source, dtype):
        return
    symbol = as_symbol(number)
    if _fits(real(symbol) if source.kind == "c" else symbol, dtype) is False:
        raise out_of_bounds(f"a number of dtype {dtype_name(source)} is out of bounds for {dtype}", dtype)


def _fits(number: Symbol, dtype: Dtype) -> bool | None:
    """True if an integer dtype has a number, which decides the path; None if the number is not at hand."""
    own, least, most = number.aval.dtype, int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    if own.kind == "f":
        whole = trunc(number)
        fits = bitwise_and(ge(whole, constant(least, own)), lt(whole, constant(most + 1, own)))
    else:
        low, high = max(least, np.iinfo(own).min), min(most, np.iinfo(own).max)
        fits = bitwise_and(ge(number, constant(low, own)), le(number, constant(high, own)))
    known = known_value(fits)
    answer = UPWARD.decided(fits) if known is None else known
    return None if answer is None else bool(answer)


def warn_of_lost_parts() -> None:
    """Warn as NumPy, at the user's line, that imaginary parts are dropped."""
    current_builder().warn("Casting complex values to real discards the imaginary part", np.exceptions.ComplexWarning)


def static_array(value: Any) -> Any:
    """A value that shapes depend on: known while tracing, or bools or integers, which are a path each."""
    if not contains_symbol(value):
        return current_builder().bake(value) if isinstance(value, np.ndarray) else value
    symbol = as_symbol(value)
    known = known_value(symbol)
    if known is not None:
        return current_builder().bake(known)
    if (found := UPWARD.needed(symbol)) is None:
        raise undecided("the shape of the result depends on a traced value, which has no number while tracing")
    return found


def undecided(what: str) -> TracerEscapeError:
    """The error for a shape that depends on what is not known."""
    return TracerEscapeError(what, remedy=CHOOSE)


def stack_nested(values: Sequence[Operand], dtype: Dtype | None = None) -> Symbol:
    """The array that a nested list stands for, as np.array makes it."""
    if not contains_symbol(values):
        return current_builder().capture(_converted(partial(np.array, dtype=dtype), values, dtype))
    rows = (
        of_one_dtype(*values)
        if dtype is None
        else [as_array(as_symbol(_number(value, dtype), dtype)) for value in values]
    )
    shape = rows[0].shape
    if any(row.shape != shape for row in rows):
        raise ArgumentTypeError(
            f"a list of shapes {', '.join(str(row.shape) for row in rows)} is not an array", remedy=RAGGED
        )
    return concatenate(*[reshape_to(row, (1, *shape)) for row in rows], axis=0)


def _number(value: Any, dtype: Dtype) -> Any:
    """An element of a list; of floats NumPy takes None for nan."""
    return np.nan if value is None and dtype.kind in "fc" else value


def contains_symbol(value: Any) -> bool:
    """True if there is a symbol in a nested list, or a size that is one."""
    if isinstance(value, (list, tuple)):
        return any(map(contains_symbol, value))
    return isinstance(value, Symbol) or is_size(value)


# ---- promotion -----------------------------------------------------------------------------------------------------


def promotes_as(value: Operand) -> Any:
    """The operand for NumPy's promotion: a dtype, or the type of a Python number."""
    if isinstance(value, WeakSymbol):
        python_type = value.python_type
    elif isinstance(value, HalfSymbol):
        return F16
    elif isinstance(value, (Symbol, np.ndarray, np.generic)):
        return value.dtype
    elif is_python_number(value):
        python_type = next(t for t in NUMBERS if isinstance(value, t))
    else:
        return as_symbol(value).dtype
    return BOOL if python_type is bool else python_type


def promotion_example(value: Any) -> Any:
    """The argument for np.result_type that stands for an operand, a dtype for itself."""
    if isinstance(value, (np.dtype, type, str)):
        return value
    promoted = promotes_as(value)
    return promoted(0) if isinstance(promoted, type) else promoted


def common_dtype(*values: Operand) -> Dtype:
    """The dtype that NumPy promotes the operands to."""
    examples = [promotion_example(value) for value in values]
    try:
        return np.result_type(*examples)
    except TypeError as error:
        check_dtypes(examples)
        raise DtypeError(str(error)) from None


def check_dtypes(dtypes: Sequence[Any]) -> None:
    """Raise `DtypeError` where there is a dtype that fnad does not have."""
    for dtype in dtypes:
        if isinstance(dtype, np.dtype):
            native_dtype(dtype)


def common_shape(shapes: Sequence[Shape]) -> Shape:
    """The shape that NumPy broadcasts these to; raise ShapeError with NumPy's message where there is none."""
    first = shapes[0]
    for shape in shapes:
        if shape != first:
            return _broadcast_shapes(shapes)
    return first


def _broadcast_shapes(shapes: Sequence[Shape]) -> Shape:
    larger = [shape for shape in shapes if shape]
    if all(shape == larger[0] for shape in larger):
        return larger[0]
    try:
        return _broadcast_sizes(shapes) if sizes_in(shapes) else np.broadcast_shapes(*shapes)
    except ValueError:
        listed = " ".join(map(str, shapes))
        raise ShapeError(f"operands could not be broadcast together with shapes {listed}") from None


def _broadcast_sizes(shapes: Sequence[Shape]) -> Shape:
    """`np.broadcast_shapes` where sizes are symbols."""
    found: list[int] = []
    for sizes in zip_longest(*map(reversed, shapes), fillvalue=1):
        first, *others = [n for n in sizes if n != 1] or [1]
        if any(n != first for n in others):
            raise ValueError
        found.insert(0, first)
    return tuple(found)


def broadcast_all(symbols: Sequence[Symbol]) -> list[Symbol]:
    """Broadcast to the common shape."""
    shape = common_shape([symbol.aval.shape for symbol in symbols])
    return [broadcast_to(symbol, shape) for symbol in symbols]


def as_array(value: Operand, dtype: Dtype | None = None) -> Symbol:
    """An operand as np.asarray makes it, cast to a dtype: a Python number keeps its own beside others, and wraps."""
    symbol = strong(as_symbol(value))
    return symbol if dtype is None else to_dtype(symbol, dtype)


def of_one_dtype(*values: Operand) -> list[Symbol]:
    """The operands as np.asarray makes them, in their common dtype."""
    arrays = [as_array(value) for value in values]
    dtype = common_dtype(*arrays)
    return [to_dtype(array, dtype) for array in arrays]


def as_vector(value: Operand, dtype: Dtype | None = None) -> Symbol:
    """An operand as np.atleast_1d does."""
    x = as_array(value, dtype)
    return x if x.ndim else reshape_to(x, (1,))


# ---- axes, shapes and counts -----------------------------------------------------------------------------------------

Ints = tuple[int, ...]

FIXED = "shapes are fixed in the body of a loop and in rows: pass an ordinary int"


def static_int(value: Any, what: str) -> int:
    """A size, a count or an axis as an int; raise where it is a traced value, and TypeError as NumPy."""
    found = static_number(value, what)
    return found if is_size(found) else operator.index(found)


def static_number(value: Any, what: str, remedy: str = FIXED) -> Any:
    """A number that has to be known, as what a shape depends on; raise where it is traced and none is at hand."""
    if not isinstance(value, Symbol):
        return value
    known = known_value(value)
    if known is None and value.ndim == 0 and value.dtype.kind in "iu":
        known = UPWARD.needed(value)  # a path for each integer, as for a mask
    if known is None:
        raise TracerEscapeError(
            f"{what} was given as a traced value of aval {value.aval}, which has no number while tracing", remedy=remedy
        )
    return known[()]


def static_ints(value: Any, what: str) -> Ints:
    """One int or a sequence of them as a tuple."""
    known = known_value(value) if isinstance(value, Symbol) and value.ndim else None
    return tuple(static_int(v, what) for v in several(value if known is None else known))


def several(value: Any) -> Iterable[Any]:
    """A sequence as it is; a number, or an array without dimensions, as a sequence of one."""
    return value if isinstance(value, Iterable) and getattr(value, "shape", None) != () else (value,)


def axis_of(axis: Any, ndim: int) -> int:
    """An axis as a number from 0 on."""
    index = static_int(axis, "an axis")
    if not -ndim <= index < ndim:
        raise AxisError(f"axis {index} is out of bounds for array of dimension {ndim}")
    return index + ndim if index < 0 else index


def axes_of(axis: Any, ndim: int) -> Ints:
    """The axes, None for all, in the order given."""
    if axis is None:
        return tuple(range(ndim))
    axes = tuple(axis_of(a, ndim) for a in several(axis))
    if len(set(axes)) != len(axes):
        raise AxisError("duplicate value in 'axis'")
    return axes


def reduced_axes(axis: Any, ndim: int) -> Ints:
    """The axes that a ufunc reduces: of no dimensions it takes 0 and -1 for none."""
    is_none = ndim == 0 and isinstance(axis, (int, np.integer)) and axis in (0, -1)
    return () if is_none else axes_of(axis, ndim)


def reduced_shape(shape: Shape, axes: Ints, keepdims: bool) -> Shape:
    """The shape after a reduction."""
    if keepdims:
        return tuple(1 if a in axes else n for a, n in enumerate(shape))
    return tuple(n for a, n in enumerate(shape) if a not in axes)

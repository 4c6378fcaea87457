"""The traced value that the user's function computes with: it speaks NumPy.

Operators, methods and attributes are those of what it stands for, an array, a NumPy number or a Python one. Each method
that NumPy has as a function too is that function; the few others stand here.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, NoReturn

import numpy as np

from fnad.errors import FnadError, ShapeError
from fnad.ir.known import known_value
from fnad.ir.size import estimate
from fnad.ir.symbol import Symbol
from fnad.ir.types import BOOL, Dtype, Shape
from fnad.numpy import indexing, mathematical, methods
from fnad.numpy.indexing import is_place
from fnad.numpy.operands import F16, NUMBERS, HalfSymbol
from fnad.numpy.registry import RULES
from fnad.trace import escape, guards
from fnad.trace.dispatch import (
    SIMPLE,
    STRAIGHT,
    as_number,
    assign,
    call,
    call_function,
    call_ufunc,
    call_with_options,
    check_number,
)
from fnad.trace.flat import Flags, Flat
from fnad.trace.handle import TRACED, Aside, Cell, Handle
from fnad.trace.objects import asks_for_objects, object_array
from fnad.trace.operators import (
    BINARY,
    COMPARISONS,
    ORDINARY,
    PYTHON_LIKE,
    call_alike,
    is_of_ma,
    operate,
    operate_in_place,
    python_number,
    unmasked,
)
from fnad.trace.selection import Masked, call_traced, is_under, put, selection
from fnad.trace.text import formats_a_number, number_to_format, text
from fnad.trace.value_classes import Kind, classes_of, kind_of
from fnad.upward import UPWARD

FEW = 32
"""Elements of an array whose places come again from trace to trace, as those of parameters do."""


class Tracer(Handle, metaclass=Kind):
    """A traced value, of that subclass which is for what it stands for; this is what all have."""

    __slots__ = ()
    __pandas_priority__ = 5000  # above that of DataFrames, which leave operators to it

    def __new__(cls, symbol: Any, *, is_scalar: bool = False) -> Any:
        return object.__new__(CLASSES[kind_of(symbol, is_scalar=is_scalar)])

    # ---- the number: of what depends on no input, and of scalars that Python decides by ------------------------------

    def _known(self, refusal: Callable[..., FnadError], *args: Any) -> Any:
        value = known_value(self.symbol)
        if value is None:
            raise self._refused(refusal, *args)
        return value

    def _answer(self, ask: Callable[[Symbol], int | None], refusal: Callable[..., FnadError], *args: Any) -> Any:
        known = known_value(self.symbol)
        answer = ask(self.symbol) if known is None and self.symbol.builder.alive else known
        if answer is None:
            if self.is_alive:
                guards.part_rows(self.symbol)
            raise self._refused(refusal, *args)
        return answer

    def _refused(self, refusal: Callable[..., FnadError], *args: Any) -> FnadError:
        """The error for what it is asked, which is another one where its trace is over."""
        return refusal(self.aval, *args) if self.is_alive else escape.used_after_trace(self.symbol)

    # math.floor and math.ceil ask for these first, and for a float where there is none, as of np.float32

    def __floor__(self) -> int:
        return int(np.floor(self))

    def __ceil__(self) -> int:
        return int(np.ceil(self))

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise self._refused(escape.pickle_asked)

    # ---- an object among others --------------------------------------------------------------------------------------

    def __hash__(self) -> int:
        if not self.is_scalar:
            raise self._refused(escape.hash_asked)
        if self.aval.dtype.kind in "biu":
            return hash(int(self._answer(guards.integer, escape.hash_asked)))
        return hash(self._known(escape.hash_asked)[()])

    def __repr__(self) -> str:
        return text(self, repr)

    def __str__(self) -> str:
        return text(self, str)

    def __format__(self, spec: str) -> str:
        return text(self, lambda value: format(value, spec))

    def __copy__(self) -> Any:
        return self if self.is_weak else call(methods.copy, (self,), {})

    def __deepcopy__(self, memo: Any) -> Any:
        return self.__copy__()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"a traced value has no {name!r}", name=name, obj=self)
        return escape.attribute_asked(self.aval, self.__class__, name)


class Members(Tracer):
    """Members that not all traced values have."""

    __slots__ = ()

    # ---- NumPy's protocols -------------------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        for operand in inputs:
            kind = type(operand)
            if id(kind) not in SIMPLE and kind is not np.ndarray:
                if issubclass(kind, Aside):
                    return NotImplemented
                if is_of_ma(kind):
                    return import_module("fnad.trace.masked").on_ufunc(ufunc, method, inputs, kwargs)
                is_table = not issubclass(kind, Handle) and hasattr(kind, "__pandas_priority__")
                if is_table and ufunc.nout == 1 and method == "__call__" and not kwargs:
                    return import_module("fnad.trace.labelled").beside(ufunc, inputs)
        rule = RULES.get(ufunc) if method == "__call__" and not kwargs else None  # as nearly always
        if rule is not None:
            return call(rule, inputs, kwargs)
        return call_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return call_traced(function, args, kwargs)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        value = self._known(escape.array_asked).astype(dtype or self.aval.dtype)
        return value if copy else self.lend(value)

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return array

    # ---- what is known while tracing ---------------------------------------------------------------------------------

    @property
    def shape(self) -> Shape:
        return self.aval.shape

    @shape.setter
    def shape(self, value: Any) -> None:
        self.become(call(methods.reshape, (self, value), {}))

    @property
    def flags(self) -> Flags:
        return Flags(self)

    @property
    def dtype(self) -> Dtype:
        return F16 if type(self._symbol) is HalfSymbol else self.aval.dtype

    @property
    def ndim(self) -> int:
        return self.aval.ndim

    @property
    def size(self) -> int:
        return self.aval.size

    @property
    def nbytes(self) -> int:
        return self.aval.nbytes

    @property
    def itemsize(self) -> int:
        return self.aval.dtype.itemsize

    @property
    def device(self) -> str:
        return "cpu"

    def __array_namespace__(self, **options: Any) -> Any:
        return np.empty(0).__array_namespace__(**options)

    def __len__(self) -> int:
        if not self.aval.shape:
            raise escape.axis_asked("len() of unsized object")
        return self.aval.shape[0]

    # ---- the number --------------------------------------------------------------------------------------------------

    def __bool__(self) -> bool:
        if self.aval.size != 1:
            raise self._refused(escape.truths_asked)
        return bool(self._answer(guards.truth, escape.truth_asked))

    def __float__(self) -> float:
        if formats_a_number():
            return number_to_format(self)
        return float(self._known(escape.number_asked, "its float"))

    def __complex__(self) -> complex:
        return complex(self._known(escape.number_asked, "its complex"))

    def __int__(self) -> int:
        if self.aval.shape or self.aval.dtype.kind == "c":
            return int(self._known(escape.number_asked, "its int"))
        return int(self._answer(guards.integer, escape.integer_asked, "its int"))

    def __index__(self) -> int:
        if self.aval.shape or self.aval.dtype.kind not in ("iub" if self.is_weak else "iu"):
            return operator.index(self._known(escape.index_asked))
        return operator.index(self._answer(guards.integer, escape.integer_asked, "an index"))

    def __trunc__(self) -> int:
        return int(self)

    def is_integer(self) -> bool:
        return bool(np.isfinite(self) & (np.floor(self) == self))

    def __round__(self, digits: Any = None) -> Any:
        return int(np.round(as_number(self))) if digits is None else call_alike(np.round, self, digits)

    def item(self, *args: Any) -> Any:
        known = known_value(self.symbol)
        if known is not None:
            return known.item(*args)
        place = np.arange(self.aval.size).reshape(self.aval.shape).item(*args)
        return python_number(call_function(np.ravel, (self,), {})[place])

    def tolist(self) -> Any:
        known = known_value(self.symbol)
        if known is not None:
            return known.tolist()
        return [row.tolist() for row in self] if self.aval.shape else self.item()

    # ---- elements and parts ------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Any]:
        if not self.aval.shape:
            raise escape.axis_asked("iteration over a 0-d array")
        return map(self.__getitem__, range(self.aval.shape[0]))

    def __getitem__(self, index: Any) -> Any:
        if type(index) is int or is_place(index):
            return call(indexing.getitem if estimate(self.aval.size) <= FEW else indexing.read_at, (self, index), {})
        if is_mask(index):
            return selection(Selection, self, index)
        return call(indexing.getitem, (self, index), {})

    def __contains__(self, value: Any) -> bool:
        return bool(np.any(self == value))

    def __setitem__(self, index: Any, value: Any) -> None:
        kind = type(value)
        if id(kind) not in SIMPLE and kind is not np.ndarray:
            value = unmasked(value)
        if self.aval.dtype.kind == "i" and indexing.is_basic(index):
            check_number(value, self.aval.dtype)
        if is_place(index):
            assign(indexing.write_at, self, index, value)
        elif is_under(index, value, self.aval.ndim):
            assign(put, self, index, value.values)
        else:
            assign(indexing.setitem, self, index, value)

    @property
    def T(self) -> Any:  # noqa: N802
        return call_function(np.transpose, (self,), {})

    @property
    def mT(self) -> Any:  # noqa: N802
        return call_function(np.matrix_transpose, (self,), {})

    @property
    def real(self) -> Any:
        return call_function(np.real, (self,), {})

    @real.setter
    def real(self, value: Any) -> None:
        self.real[...] = value

    @property
    def imag(self) -> Any:
        return call_function(np.imag, (self,), {})

    @imag.setter
    def imag(self, value: Any) -> None:
        self.imag[...] = value

    @property
    def flat(self) -> Any:
        return Flat(self)

    @flat.setter
    def flat(self, value: Any) -> None:
        self.flat[...] = value

    def fill(self, value: Any) -> None:
        if np.ndim(value) > 0:
            what = "setting an array element with a sequence"
            raise ShapeError.here(what, remedy="write x[...] = value")
        self[...] = value

    def sort(self, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> None:
        assign(methods.sort, self, axis, kind, order, stable=stable)

    def partition(self, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None) -> None:
        assign(methods.partition, self, kth, axis, kind, order)


def is_mask(index: Any) -> bool:
    """True if an index is a bool array that is not known while tracing."""
    if not isinstance(index, Tracer) or index.aval.dtype != BOOL:
        return False
    return index.aval.ndim > 0 and known_value(index.symbol) is None


UNARY: dict[str, np.ufunc] = {"neg": np.negative, "pos": np.positive, "abs": np.absolute, "invert": np.invert}

FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: getattr(np, name)
    for names in (
        ("all", "any", "argmax", "argmin", "max", "mean", "min", "prod", "std", "sum", "trace", "var"),
        ("cumprod", "cumsum", "argpartition", "argsort", "nonzero", "searchsorted"),
        ("choose", "diagonal", "dot", "put", "repeat", "round", "take"),
        ("ravel", "squeeze", "swapaxes"),
    )
    for name in names
}
"""Methods that are functions of the same arguments."""

METHODS: dict[str, Callable[..., Any]] = {
    **{name: getattr(methods, name) for name in ("astype", "conjugate", "copy", "flatten", "reshape", "transpose")},
    "conj": methods.conjugate,
    "view": methods.view,
}
"""Methods with arguments of their own."""

METHODS_WITH_OUT: dict[str, Callable[..., Any]] = {"clip": mathematical.within_bounds, "compress": methods.compress}


def _operator(ufunc: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *operands: operate(ufunc, *operands)


def _reflected(ufunc: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, y: operate(ufunc, y, x)


def _in_place(ufunc: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, y: operate_in_place(ufunc, x, y)


def _power(x: Any, y: Any, modulus: Any = None) -> Any:
    if modulus is not None:
        raise escape.modulus_given()
    return operate(operator.pow, x, y)


def _reflected_power(x: Any, y: Any, modulus: Any = None) -> Any:
    return _power(y, x, modulus)


def _function(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, *args, **kwargs: call_function(function, (x, *args), kwargs)


def _method(rule: Callable[..., Any]) -> Callable[..., Any]:
    def method(x: Any, *args: Any, **kwargs: Any) -> Any:
        return call_alike(lambda *given, **options: call(rule, given, options), x, *args, **kwargs)

    return method


def _method_with_out(name: str, rule: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, *args, **kwargs: call_with_options(name, rule, (x, *args), kwargs)


def _astype(x: Any, dtype: Any, *args: Any, **kwargs: Any) -> Any:
    return object_array(x) if asks_for_objects((dtype,), {}, 0) else AS_NUMBERS(x, dtype, *args, **kwargs)


AS_NUMBERS = _method(methods.astype)


def operators() -> Iterator[tuple[str, Callable[..., Any]]]:
    """The methods for Python's operators."""
    for name, ufunc in (BINARY | {"divmod": np.divmod}).items():
        yield f"__{name}__", _operator(ufunc)
        yield f"__r{name}__", _reflected(ufunc)
    yield from {"__pow__": _power, "__rpow__": _reflected_power}.items()
    yield from ((f"__i{name}__", _in_place(ufunc)) for name, ufunc in BINARY.items())
    yield from ((f"__{name}__", _operator(ufunc)) for name, ufunc in (COMPARISONS | UNARY).items())


def _members() -> Iterator[tuple[str, Callable[..., Any]]]:
    yield from operators()
    yield from ((name, _function(function)) for name, function in FUNCTIONS.items())
    yield from ((name, _method(rule)) for name, rule in METHODS.items())
    yield from ((name, _method_with_out(f"numpy.{name}", rule)) for name, rule in METHODS_WITH_OUT.items())
    yield "astype", _astype


for _name, _member in _members():
    setattr(Members, _name, _member)

for _name in ("__array_ufunc__", "__array_function__"):
    setattr(Kind, _name, staticmethod(vars(Members)[_name]))

CLASSES = classes_of(Tracer, vars(Members))


class Selection(Masked, CLASSES[np.ndarray]):
    """The elements of a traced array under a traced mask."""

    __slots__ = ()
    __hash__ = Tracer.__hash__  # pyright: ignore[reportAssignmentType]  # not that of operators without one


def made(symbol: Symbol, *, is_scalar: bool = False) -> Handle:
    """The handle that `Tracer` makes of a value, in half the time."""
    handle: Handle = object.__new__(CLASSES[kind_of(symbol, is_scalar=is_scalar)])
    Handle.__init__(handle, symbol, is_scalar=is_scalar)
    return handle


def fresh(symbol: Symbol, is_scalar: bool) -> Handle:
    """The handle of a NumPy value, made without a constructor."""
    aval = symbol.aval
    handle: Any = NEW(CLASSES[aval.dtype.type] if is_scalar else CLASS_OF_ARRAYS)
    handle._cell = cell = NEW(Cell)
    cell.symbol = handle._symbol = symbol
    handle._steps, handle._version, handle.aval, handle.is_scalar = (), 0, aval, is_scalar
    return handle


NEW, CLASS_OF_ARRAYS = object.__new__, CLASSES[np.ndarray]


UPWARD.handle_of = made
UPWARD.fresh_handle_of = fresh
for _classes in (SIMPLE, STRAIGHT, TRACED, ORDINARY):
    _classes.update(map(id, CLASSES.values()))
PYTHON_LIKE.update(id(CLASSES[kind]) for kind in NUMBERS)

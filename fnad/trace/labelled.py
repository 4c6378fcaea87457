"""The values of a Series or DataFrame among the arguments: an array to NumPy, with the methods of pandas.

Rows and columns have labels there, by which pandas finds elements and puts two tables together; the program has none.
So where labels decide, in `s["a"]`, in `s[1:] - s[:-1]`, in the columns of which `df.mean()` has one mean each, the
answer is that of pandas or an error. Of labels is known whether those of two values are the same. What NumPy's
functions make of a value, but element by element, is an array without labels, and so is `s.to_numpy()`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from fnad.errors import MissingAttributeError, UnsupportedFunctionError
from fnad.ir.types import BOOL
from fnad.trace.dispatch import call_function
from fnad.trace.escape import TABLE
from fnad.trace.handle import Aside, Handle
from fnad.trace.operators import operate, operate_in_place
from fnad.trace.selection import call_traced
from fnad.trace.tracer import CLASSES, Members, Tracer

IN_ORDER = "0, 1, 2, …"
"""The labels of rows that nobody gave others."""

BOOLS = (BOOL, bool)


class Labels(NamedTuple):
    """The labels of a value: values with equal ones have the same; a Series has no columns."""

    rows: Hashable
    columns: Hashable = None


def labels_of(values: Sequence[Any]) -> dict[int, Labels]:
    """Those of the tables among values."""
    known: list[tuple[Any, Hashable]] = []
    found: dict[int, Labels] = {}
    for i, value in enumerate(values):
        if type(value) is Labelled:
            found[i] = value.labels
        elif is_labelled(value):
            rows, *columns = (_label(labels, known) for labels in value.axes)
            found[i] = Labels(rows, *columns)
    return found


def is_labelled(value: Any) -> bool:
    """True if it is a Series or DataFrame of pandas."""
    return hasattr(value, "to_numpy") and hasattr(value, "axes") and not isinstance(value, Tracer)


def _label(labels: Any, known: list[tuple[Any, Hashable]]) -> Hashable:
    if (getattr(labels, "start", None), getattr(labels, "step", None)) == (0, 1):  # a RangeIndex
        return IN_ORDER
    for other, number in known:
        if other is labels or other.equals(labels):
            return number
    known.append((labels, len(known)))
    return len(known) - 1


def labelled(x: Any, labels: Labels | None) -> Any:
    """An array with labels, in the same memory."""
    if labels is None:
        return x
    array: Any = object.__new__(Labelled)
    for name in STATE:
        setattr(array, name, getattr(x, name))
    array.labels = labels
    return array


STATE = [name for name in Handle.__slots__ if name != "__weakref__"]


class Labelled(Aside, CLASSES[np.ndarray]):
    """A Series if it has one dimension, else a DataFrame."""

    __slots__ = ("labels",)
    __hash__ = Tracer.__hash__  # pyright: ignore[reportAssignmentType]

    labels: Labels

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except MissingAttributeError as error:  # what NumPy has of the name may be something else
            raise MissingAttributeError(error.what, source=error.source, remedy=TABLE) from None

    @property
    def values(self) -> Any:
        """The array without labels."""
        return self.through((), self.symbol)

    def to_numpy(self, dtype: Any = None, copy: bool = False, **_: Any) -> Any:
        values = self.values if dtype is None else self.values.astype(dtype)
        return values.copy() if copy else values

    def moved(self, values: Any) -> Any:
        """Values that have the rows of this one in another order."""
        return labelled(values, Labels(object(), object() if values.ndim > 1 else None))

    @property
    def T(self) -> Any:  # noqa: N802
        return self.moved(self.values.T)

    def transpose(self, *axes: Any) -> Any:
        return self.moved(self.values.transpose(*axes))

    # ---- element by element ------------------------------------------------------------------------------------------

    def operated(self, ufunc: Any, operands: Any) -> Any:
        if ufunc is np.matmul:
            return self.product(operands)
        labels, arrays = without_labels(operands)
        result = operate(ufunc, *arrays)
        return result if result is NotImplemented else _like(result, self, labels)

    def operated_in_place(self, ufunc: Any, operand: Any) -> Any:
        _, (x, y) = without_labels((self, operand))
        operate_in_place(ufunc, x, y)
        return self

    def product(self, operands: Any) -> Any:
        """A matrix product, which of a DataFrame and a vector has the labels of its rows, or of its columns."""
        result = operate(np.matmul, *map(array_of, operands))
        labels = self.labels.rows if operands[0] is self else self.labels.columns
        return labelled(result, Labels(labels)) if self.aval.ndim > 1 and np.ndim(result) == 1 else result

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if ufunc is np.matmul and method == "__call__" and not kwargs:
            return self.product(inputs)
        labels, arrays = without_labels(inputs)
        kwargs = {name: without_labels(x)[1] if isinstance(x, tuple) else array_of(x) for name, x in kwargs.items()}
        result = Members.__array_ufunc__(self.values, ufunc, method, *arrays, **kwargs)
        if method != "__call__" or result is NotImplemented or "out" in kwargs:
            return result
        return tuple(_like(x, self, labels) for x in result) if ufunc.nout > 1 else _like(result, self, labels)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if isinstance(function, np.ufunc):
            return self.__array_ufunc__(function, "__call__", *args, **kwargs)
        if args and args[0] is self and (function in OF_NUMPY or function in SAME):
            if function in SAME:
                return getattr(self, function.__name__)(*args[1:], **kwargs)
            return self.reduced_by_numpy(function, *args[1:], **kwargs)
        named = {name: array_of(x) for name, x in kwargs.items()}
        return call_traced(function, [array_of(x) for x in args], named)

    # ---- reductions --------------------------------------------------------------------------------------------------

    def reduced(self, name: str, axis: Any, skipna: bool, options: dict[str, Any]) -> Any:
        """A reduction as by pandas, which leaves out what is nan; of a DataFrame by columns."""
        axis = {"index": 0, "rows": 0, "columns": 1}.get(axis, axis) if isinstance(axis, str) else axis
        options.pop("numeric_only", None)
        function = getattr(np, f"nan{name}" if skipna and name not in ("any", "all") else name)
        result = call_function(function, (self.values,), {"axis": axis, **options})
        along = self.labels.rows if axis == 1 else self.labels.columns
        return labelled(result, Labels(along)) if np.ndim(result) else result

    def reduced_by_numpy(self, function: Any, axis: Any = None, **options: Any) -> Any:
        """The result of a NumPy function, which calls the method: of all elements, as in pandas 3."""
        name = OF_NUMPY[function]
        given = {option: value for option, value in options.items() if value is not None}
        return self.reduced(name, axis, True, ({"ddof": 0} if name in ("std", "var") else {}) | given)

    def cumsum(self, axis: Any = None, dtype: Any = None, out: Any = None, skipna: bool = True) -> Any:
        return self.accumulated("cumsum", axis or 0, skipna)

    def cumprod(self, axis: Any = None, dtype: Any = None, out: Any = None, skipna: bool = True) -> Any:
        return self.accumulated("cumprod", axis or 0, skipna)

    def accumulated(self, name: str, axis: int, skipna: bool) -> Any:
        """A running sum or product, which goes on behind what is nan."""
        values = self.values
        found = call_function(getattr(np, f"nan{name}" if skipna else name), (values, axis), {})
        return labelled(np.where(np.isnan(values), np.nan, found) if skipna else found, self.labels)

    # ---- elements ----------------------------------------------------------------------------------------------------

    def __iter__(self) -> Any:
        if self.aval.ndim > 1:
            raise refused("an iteration, which is over the labels of the columns,")
        return iter(self.values)

    def __contains__(self, key: Any) -> bool:
        raise refused("`in`, which looks among the labels,")

    def __getitem__(self, key: Any) -> Any:
        self.check_key(key)
        found = self.values[array_of(key)]
        if isinstance(key, tuple) or not found.ndim:
            return found
        if isinstance(key, slice):
            ends = key.start, key.stop, key.step
            is_known = all(end is None or type(end) is int for end in ends)
            rows = (self.labels.rows, *ends) if is_known else object()
        else:
            rows = object()
            found = found.through((), found.symbol)  # the elements themselves, where it is a mask
        return labelled(found, Labels(rows, self.labels.columns))

    def __setitem__(self, key: Any, value: Any) -> None:
        self.check_key(key)
        self.values[array_of(key)] = array_of(value)

    def check_key(self, key: Any) -> None:
        """Raise where pandas takes a key for labels that are not known; a tuple, which it refuses, is NumPy's."""
        if isinstance(key, (str, tuple, slice)) or key is None or key is ...:
            return
        keys = key if isinstance(key, list) else [key]
        is_mask = bool(keys) and all(getattr(part, "dtype", type(part)) in BOOLS for part in keys)
        has_other_rows = type(key) is Labelled and key.labels.rows != self.labels.rows
        is_by_place = is_mask or (self.aval.ndim == 1 and self.labels.rows == IN_ORDER)
        if has_other_rows or not is_by_place or (is_mask and np.ndim(keys[0]) != (key is not keys)):
            raise refused("an element or a column by its label")


def refused(what: str) -> UnsupportedFunctionError:
    """The error for what asks for labels."""
    return UnsupportedFunctionError.here(f"{what} has no rule for a traced Series or DataFrame", remedy=TABLE)


def array_of(x: Any) -> Any:
    """The array without labels."""
    if type(x) is list:
        return [array_of(y) for y in x]
    return x.values if type(x) is Labelled else x.to_numpy() if is_labelled(x) else x


def without_labels(operands: Sequence[Any]) -> tuple[Labels | None, tuple[Any, ...]]:
    """The labels of what operands have in common, and the arrays; raise where labels differ, by which pandas would go.

    A Series goes with the rows of a DataFrame, which have the labels of its columns.
    """
    found = [(x, x.labels if type(x) is Labelled else labels_of([x]).get(0)) for x in operands]
    own = [labels for _, labels in found if labels is not None]
    widest = max(own, key=lambda labels: labels.columns is not None, default=None)
    of_rows = None if widest is None else Labels(widest.columns)
    if any(labels not in (widest, of_rows) for labels in own):
        raise refused("an operation that puts rows together by their labels")
    if any(labels != Labels(IN_ORDER) for x, labels in found if labels is not None and type(x) is not Labelled):
        raise refused("an operation with a constant whose labels may be others at the next call")
    return widest, tuple(map(array_of, operands))


def beside(ufunc: Any, operands: Sequence[Any]) -> Any:
    """The result of an operator or ufunc on a traced value and a table from outside, with labels of its own."""
    table = next((operand for operand in operands if is_labelled(operand)), None)
    if table is None:
        raise refused("an operation with an Index or an array of pandas")
    if ufunc is np.matmul and len(table.axes) > 1:
        return product(*operands) if table is operands[0] else NotImplemented
    result = call_function(ufunc, tuple(map(array_of, operands)), {})
    if ufunc is np.matmul:  # of a Series pandas makes an array
        return result
    if np.shape(result) != table.shape:
        raise refused("an operation of a table with an array of another shape")
    rows, *columns = (_label(labels, []) for labels in table.axes)
    own = (label if label == IN_ORDER else object() for label in (rows, *columns))
    return labelled(result, Labels(*own))


def product(table: Any, other: Any) -> Any:
    """The product of a table from outside and a traced value, which has the rows of a DataFrame."""
    result = call_function(np.matmul, (array_of(table), array_of(other)), {})
    if len(table.axes) == 1:
        return result
    rows = _label(table.axes[0], [])
    return labelled(result, Labels(rows if rows == IN_ORDER else object(), IN_ORDER if np.ndim(result) > 1 else None))


def _like(result: Any, operand: Labelled, labels: Labels | None) -> Any:
    same = type(result) is CLASSES[np.ndarray] and result.shape == operand.shape
    return labelled(result, labels) if same else result


# ---- members that are alike ------------------------------------------------------------------------------------------


def _reduction(name: str) -> Callable[..., Any]:
    def method(self: Labelled, axis: Any = 0, skipna: bool = True, **options: Any) -> Any:
        given = {option: value for option, value in options.items() if value is not None and option != "out"}
        return self.reduced(name, axis, skipna, ({"ddof": 1} if name in ("std", "var") else {}) | given)

    return method


def _same(name: str) -> Callable[..., Any]:
    return lambda self, *args, **kwargs: _like(getattr(self.values, name)(*args, **kwargs), self, self.labels)


REDUCTIONS = ("sum", "prod", "mean", "std", "var", "min", "max", "any", "all")
OF_NUMPY: dict[Any, str] = {getattr(np, name): name for name in REDUCTIONS}
SAME = (np.clip, np.round, np.cumsum, np.cumprod)
"""NumPy functions that call the method."""

for _name in REDUCTIONS:
    setattr(Labelled, _name, _reduction(_name))
for _name in ("astype", "clip", "conj", "conjugate", "copy", "round"):
    setattr(Labelled, _name, _same(_name))

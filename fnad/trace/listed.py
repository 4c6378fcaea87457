"""Lists that the steps of a loop extend, where the steps decide: arrays with the elements, and a traced count.

A list that user code makes, in a trace in which loops are one, is a `Listed`. It has its items, as a list, until a step
of a loop appends to it. Then the trace begins again with known types of the elements (`ListForm`), and the list is
spread before the loop: into an array for each number of an element, which has room for all steps, and a count. These
arrays are carried like others. Behind the loop the list has as many elements as the count says. Sums, extrema, the
length, elements, truth, NumPy's functions and loops over the list need no more. Anything else has the count decided,
which guards the path; from then on the list has its items again.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from math import prod
from typing import Any, NamedTuple, cast

import numpy as np

from fnad.ir.builder import current_builder, untried
from fnad.ir.symbol import Symbol
from fnad.ir.types import I64, Aval
from fnad.numpy.operands import as_symbol, as_weak
from fnad.ops.conversion import convert_to
from fnad.ops.indexing import dynamic_slice, dynamic_update_slice
from fnad.ops.shape import concatenate, constant, reshape_to, zeros_like
from fnad.trace.handle import Aside, Elements, Handle
from fnad.trace.looping import LOOPING, Parted, Refused
from fnad.trace.operators import is_python_like
from fnad.trace.selection import selected
from fnad.trace.shadow import Shadow
from fnad.trace.source import current_source
from fnad.trace.tracer import Selection
from fnad.trace.wrapping import has_traced
from fnad.upward import UPWARD

UNKNOWN = 64
"""The room for elements of a list that is extended in a loop of unknown length, in its first trace."""

HELD = np.zeros(0)
"""In the place of an ordinary array that shares the memory of an element, so that neither is written to."""

CHANGED = "a step changes a list"


class ElementKind(NamedTuple):
    """The type of a number or an array in an element."""

    aval: Aval
    weak: bool
    is_scalar: bool


class ListForm:
    """The lists that one place of user code makes: their elements, and the room for them, for all traces.

    `kinds` are those of an element, a tuple of them of a tuple; None until a step appends to a list. If it
    `is_guarded`, a loop of unknown length extends the list, and each step guards that there is room. A list
    of a form that `is_refused` is an ordinary one.
    """

    def __init__(self) -> None:
        self.kinds: Any = None
        self.room = 0
        self.is_guarded = self.is_refused = False

    @property
    def version(self) -> int:
        return self.room + (self.kinds is not None) + self.is_guarded


def divided(element: Any) -> tuple[Any, list[Symbol]]:
    """The kinds and the symbols of an element; refuse one that has others than numbers and arrays."""
    if type(element) is tuple:
        parts = [divided(part) for part in element]
        return tuple(kinds for kinds, _ in parts), [symbol for _, symbols in parts for symbol in symbols]
    if isinstance(element, Handle) and not isinstance(element, Aside):
        if not element.is_scalar:
            element.lend(HELD)
        return ElementKind(element.aval, element.is_weak, element.is_scalar), [element.symbol]
    if type(element) in (bool, int, float) or isinstance(element, np.generic):
        symbol = as_symbol(element)
        return ElementKind(symbol.aval, not isinstance(element, np.generic), True), [symbol]
    raise Refused("a step puts values into a list that no loop carries")


def common(kinds: Any, others: Any) -> Any:
    """The kinds of elements of which some have these kinds, some others; refuse those of several types."""
    if type(kinds) is type(others) is tuple and len(kinds) == len(others):
        return tuple(map(common, kinds, others))
    are_parts = isinstance(kinds, ElementKind) and isinstance(others, ElementKind)
    if not are_parts or kinds._replace(weak=others.weak) != others:
        raise Refused("a list has elements of several types")
    return kinds if others.weak else others


def leaves_of(kinds: Any) -> Iterator[ElementKind]:
    if isinstance(kinds, ElementKind):
        yield kinds
    else:
        for part in kinds:
            yield from leaves_of(part)


class Listed(Aside, Elements):
    """A list that user code makes. `items` are its elements, or None where it is spread into `columns` and a `number`.

    No count is larger than `most`. In a trace within that of the list nothing else than steps of loops extends it.
    """

    __slots__ = ("builder", "columns", "depth", "form", "items", "mask", "most", "number")

    def __init__(self, items: list[Any], form: ListForm) -> None:
        self.items: list[Any] | None = items
        self.form, self.builder, self.depth = form, current_builder(), len(LOOPING.steps)
        self.columns: list[Any] = []
        self.number: Any = None
        self.mask: Any = None
        self.most = 0

    __hash__ = None  # pyright: ignore[reportAssignmentType]  # as lists

    @property
    def __class__(self) -> type[Any]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The class that `isinstance` reads."""
        return list

    @property
    def is_spread(self) -> bool:
        return self.items is None

    @property
    def room(self) -> int:
        """The number of elements that its arrays have room for."""
        return self.columns[0].aval.shape[0]

    # ---- from items to arrays, and back ------------------------------------------------------------------------------

    def spread(self) -> None:
        """Have arrays for the elements, if a step has appended to a list of this form."""
        if self.items is None or self.form.kinds is None or current_builder() is not self.builder:
            return
        items, self.items, self.most, self.mask = self.items, None, 0, None
        room = self.form.room = max(self.form.room, len(items) + 1)
        self.columns = [
            UPWARD.handle_of(constant(0, kind.aval.dtype, (room, *kind.aval.shape)))
            for kind in leaves_of(self.form.kinds)
        ]
        self.number = UPWARD.handle_of(constant(0, I64))
        for item in items:
            self._put(item, self.number.symbol)
            self._count(1)

    def _put(self, item: Any, place: Symbol) -> None:
        """Write an element; if it makes the elements more general, the trace begins again."""
        try:
            kinds, leaves = divided(item)
            found = common(self.form.kinds, kinds)
        except Refused:
            if current_builder() is not self.builder:  # a step of a loop
                raise
            self.form.is_refused = True
            raise Parted from None
        if found != self.form.kinds:
            self.form.kinds = found
            raise Parted
        current_builder().source = current_source()
        with untried():  # the room is reserved behind the loop
            for column, leaf in zip(self.columns, leaves, strict=True):
                column.write(dynamic_update_slice(column.symbol, reshape_to(leaf, (1, *leaf.shape)), *_at(place, leaf)))

    def _count(self, more: int) -> None:
        self.number.write(self.number.symbol + constant(more, I64))
        self.most += max(more, 0)

    @property
    def data(self) -> list[Any]:
        """The list, whose length guards the path if it depends on data."""
        if self.items is not None:
            return self.items
        items = [self.element(i) for i in range(operator.index(self.length))]
        if current_builder() is self.builder:
            self.items, self.columns, self.mask = items, [], None
        return items

    def elements(self) -> list[Any]:
        return self.data

    @property
    def length(self) -> Any:
        """The number of elements, traced where it depends on data."""
        return len(self.items) if self.items is not None else _number(self.number.symbol, weak=True)

    def element(self, place: Any) -> Any:
        """The element at a place, which is one."""
        columns, place = iter(self.columns), _integer(place)

        def made(kinds: Any) -> Any:
            if not isinstance(kinds, ElementKind):
                return tuple(map(made, kinds))
            column = next(columns).symbol
            with untried():
                part = dynamic_slice(column, *_at(place, column, -1), sizes=(1, *kinds.aval.shape))
            symbol = reshape_to(part, kinds.aval.shape)
            if kinds.is_scalar:
                return _number(symbol, kinds.weak)
            found = UPWARD.handle_of(symbol)
            found.lend(HELD)
            return found

        return made(self.form.kinds)

    # ---- changes -----------------------------------------------------------------------------------------------------

    def append(self, item: Any) -> None:
        if self.items is not None:
            self.owned(item).append(item)
            return
        self._make_room()
        self._put(item, self.number.symbol)
        self._count(1)

    def extend(self, items: Any) -> None:
        for item in list(self.data) if items is self else items:
            self.append(item)

    def __iadd__(self, items: Any) -> Any:
        self.extend(items)
        return self

    def pop(self, *index: Any) -> Any:
        if self.items is not None or (index and index != (-1,)):
            return self.owned().pop(*index)
        if not self:
            raise IndexError("pop from empty list")
        self._count(-1)
        return self.element(self.number.symbol)

    def clear(self) -> None:
        if self.items is not None:
            self.owned().clear()
        else:
            self.number.write(constant(0, I64))

    def __setitem__(self, index: Any, item: Any) -> None:
        if self.items is not None or isinstance(index, slice):
            self.owned(item)[index] = item
        else:
            self._put(item, self._place(index))

    def owned(self, *extended: Any) -> list[Any]:
        """The items, which the caller changes. In a step that the list is from outside of, this ends the trace.

        If the step extends it by a value, the next trace has the list spread.
        """
        is_own = len(LOOPING.steps) <= self.depth and (self.builder.alive or not LOOPING.steps)
        form = self.form
        if is_own and (self.items is not None or current_builder() is self.builder):
            return self.data
        kinds = [divided(item)[0] for item in (*(self.items or ()), *extended)]
        if is_own or self.items is None or form.kinds is not None or not kinds:
            raise Refused(CHANGED)
        most = [step.most for step in LOOPING.steps[self.depth :] if step.most is not None]
        is_known = len(most) == len(LOOPING.steps) - self.depth
        form.kinds, form.room = reduce(common, kinds), len(self.items) + (prod(most) if is_known else UNKNOWN)
        raise Parted

    def _make_room(self) -> None:
        """Have room for another element: the loops around are known to need no more, or it guards the step."""
        form, steps = self.form, LOOPING.steps[self.depth :]
        if not steps and self.most >= self.room:
            self.columns = [UPWARD.handle_of(concatenate(x.symbol, zeros_like(x.aval), axis=0)) for x in self.columns]
        elif steps and form.is_guarded:
            if not self.length < self.room:
                self._lack_room()
        elif any(step.most is None or any(each is self for each in step.lists) for step in steps):
            form.is_guarded = True
            raise Parted

    def _lack_room(self) -> None:
        """Trace again with more room, unless this step has answers given: then it is not recorded."""
        values = getattr(current_builder(), "values", None)
        if isinstance(values, Shadow) and values.is_given:
            values.has_strayed = True
            return
        self.form.room *= 2
        raise Parted

    def reserved(self, by: int, steps: int | None) -> int:
        """The most elements behind a loop of some steps, which extend the list by so many each.

        The trace begins again if there is no room for them.
        """
        if not self.is_spread or not by:
            return self.most
        if self.form.is_guarded or steps is None:
            return self.room
        most = self.most + by * steps
        if most > self.room:
            self.form.room = most
            raise Parted
        return most

    # ---- by the count alone ------------------------------------------------------------------------------------------

    def has(self, place: Any) -> Any:
        """True if there is an element at a place, which may be traced."""
        return place < self.length

    def __len__(self) -> int:
        return operator.index(self.length)

    def __bool__(self) -> bool:
        return bool(self.length > 0)

    def __getitem__(self, index: Any) -> Any:
        if self.items is not None or isinstance(index, slice):
            return self.data[index]
        return self.element(self._place(index))

    def _place(self, index: Any) -> Symbol:
        """The place of an element of the arrays, for an index of the list."""
        if not isinstance(index, Handle):
            index = operator.index(index)
        count, place = self.length, cast("Any", index)
        place = np.where(place < 0, place + count, place) if isinstance(index, Handle) else place + count * (place < 0)
        if not 0 <= place < count:
            raise IndexError("list index out of range")
        return _integer(place)

    def __iter__(self) -> Iterator[Any]:
        return ListIterator(self)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return list, (self.data,)

    # ---- as arrays ---------------------------------------------------------------------------------------------------

    def whole(self) -> Any:
        """The elements as NumPy makes an array of them: a selection of the first ones."""
        key = self.number.symbol, current_builder()
        if self.mask is None or any(x is not y for x, y in zip(key, self.mask, strict=False)):
            self.mask = *key, np.arange(self.room) < _number(self.number.symbol, weak=True)
        columns = [column.copy() for column in self.columns]
        values = columns[0] if isinstance(self.form.kinds, ElementKind) else np.stack(columns, axis=1)
        return selected(Selection, values, self.mask[2])

    def is_whole(self) -> bool:
        """True if the list is spread, and NumPy makes an array of it without a change of types."""
        if self.items is not None:
            return False
        kinds = self.form.kinds
        return isinstance(kinds, ElementKind) or (len(set(kinds)) == 1 and isinstance(kinds[0], ElementKind))

    def sum(self, start: Any = 0) -> Any:
        """`sum` of the list."""
        kinds = self.form.kinds
        if self.items is not None or not isinstance(kinds, ElementKind) or kinds.aval.dtype.kind == "b":
            return sum(self.data, start)
        if not kinds.is_scalar and not self:
            return start
        total = np.sum(self.whole(), axis=0)
        return start + (_number(total.symbol, weak=True) if kinds.weak else total)

    def best(self, function: Callable[..., Any]) -> Any:
        """`min` or `max` of the list: the first element, and each that is better than those before."""
        kinds = self.form.kinds
        is_float = isinstance(kinds, ElementKind) and kinds.is_scalar and kinds.aval.dtype.kind == "f"
        if self.items is not None or not is_float:
            return function(self.data)
        if not self:
            return function([])
        values, counts = self.columns[0], self.whole().mask
        worst = -np.inf if function is max else np.inf
        candidates = np.where(counts & ~np.isnan(values), values, worst)
        place = (np.argmax if function is max else np.argmin)(candidates)
        return self.element(np.where(np.isnan(values[0]), 0, place))

    def operated(self, ufunc: Any, operands: Any) -> Any:
        if any(map(is_python_like, operands)):
            return NotImplemented
        return self.__array_ufunc__(ufunc, "__call__", *operands)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        function = ufunc if method == "__call__" else getattr(ufunc, method)
        return function(*map(as_array, inputs), **kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        args, kwargs = tuple(map(as_array, args)), {name: as_array(value) for name, value in kwargs.items()}
        if function in (np.array, np.asarray, np.asanyarray) and type(args[0]) is Selection and len(args) == 1:
            dtype = kwargs.pop("dtype", None)
            if not kwargs:
                return args[0] if dtype is None else args[0].astype(dtype)
        return UPWARD.traced(function, args, kwargs) if has_traced((args, kwargs)) else function(*args, **kwargs)


cast("Any", Sequence).register(Listed)  # so that it matches patterns, too


def summed(values: Any, /, *args: Any, **options: Any) -> Any:
    """`sum`."""
    return values.sum(*args, **options) if type(values) is Listed else sum(values, *args, **options)


class ListIterator:
    """An iterator over a list, which may grow meanwhile. The first element that is taken decides the length."""

    def __init__(self, listed: Listed) -> None:
        self.listed, self.place = listed, 0

    def __iter__(self) -> ListIterator:
        return self

    def __next__(self) -> Any:
        listed, place = self.listed, self.place
        if current_builder() is listed.builder:
            _ = listed.data
        if not listed.has(place):
            raise StopIteration
        self.place += 1
        return listed.element(place) if listed.items is None else listed.items[place]

    def __reduce__(self) -> tuple[Any, ...]:
        return iter, (self.listed,), self.place


def as_array(value: Any) -> Any:
    """An argument of a NumPy function: a selection for a list, the items of lists within others."""
    if type(value) is Listed:
        return value.whole() if value.is_whole() else value.data
    if type(value) in (list, tuple):
        return type(value)([part.data if type(part) is Listed else part for part in value])
    return value


def _at(place: Symbol, value: Symbol, less: int = 0) -> list[Symbol]:
    return [place, *[constant(0, I64)] * (len(value.shape) + less)]


def _integer(place: Any) -> Symbol:
    if isinstance(place, Symbol):
        return place
    return convert_to(place.symbol, I64) if isinstance(place, Handle) else constant(place, I64)


def _number(symbol: Symbol, weak: bool) -> Any:
    return UPWARD.handle_of(as_weak(symbol) if weak else symbol, is_scalar=True)


def _as_list(name: str) -> Callable[..., Any]:
    return lambda self, *args, **kwargs: getattr(self.data, name)(*args, **kwargs)


def _changing(name: str) -> Callable[..., Any]:
    def change(self: Listed, *args: Any, **kwargs: Any) -> Any:
        items = self.owned()
        found = getattr(items, name)(*args, **kwargs)
        return self if found is items else found

    return change


for _name in ("__contains__", "__repr__", "__reversed__", "copy", "count", "index"):
    setattr(Listed, _name, _as_list(_name))
for _name in ("__delitem__", "__imul__", "insert", "remove", "reverse", "sort"):
    setattr(Listed, _name, _changing(_name))
for _name in ("add", "mul", "eq", "ne", "lt", "le", "gt", "ge"):
    _operator = getattr(operator, _name)
    setattr(Listed, f"__{_name}__", lambda x, y, f=_operator: f(x.data, y.data if type(y) is Listed else y))
    setattr(Listed, f"__r{_name}__", lambda x, y, f=_operator: f(y, x.data))

"""Pytrees of arrays and numbers, and what may stand at their leaves.

A leaf is an array of a supported dtype, a NumPy scalar, a Python number, or a traced value. Containers are those of
optree: tuples, lists, dicts and what is registered with it, under its namespace "fnad" too; None is a container of
nothing. A list of numbers is therefore a container of numbers, not an array.
"""

from __future__ import annotations

import atexit
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from functools import cache
from threading import Event, current_thread, main_thread
from types import CodeType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import numpy as np

from fnad.api.staging import dataclass_trees
from fnad.api.staging.dataclass_trees import NAMESPACE
from fnad.errors import ArgumentTypeError, DtypeError, ExitError, FnadError, PlacementError
from fnad.forks import end_threads
from fnad.ir.program import Source
from fnad.ir.size import is_size
from fnad.ir.symbol import Symbol
from fnad.ir.types import NAMES, Aval, aval_of, in_native_order
from fnad.numpy.operands import NUMBERS, PYTHON_DTYPES
from fnad.placement import adopted, is_on_device
from fnad.trace.capture import way_out_of
from fnad.trace.dispatch import tracing_builder
from fnad.trace.escape import nested_too_deeply
from fnad.trace.hooks import callee
from fnad.trace.labelled import Labels, is_labelled, labels_of
from fnad.trace.source import current_source
from fnad.trace.tracer import Tracer
from fnad.upward import UPWARD

if TYPE_CHECKING:
    import optree

Array: TypeAlias = "np.ndarray[Any, Any]"
Function: TypeAlias = Callable[..., Any]
Structure: TypeAlias = "optree.PyTreeSpec"
Operand: TypeAlias = "Array | Symbol"
"""An operand of a program: an array, or a symbol of the trace under way."""

METHOD = (
    "transform the bound method, or a function of the other arguments inside the method; or register the class with "
    "optree"
)


CONTAINERS = "put arrays and numbers in tuples, lists, dicts, dataclasses or classes registered with optree"
NAMED = f"convert it with astype to one of {', '.join(map(str, NAMES))}"


class Leaf(NamedTuple):
    """The operand of a program for one leaf; `weak` marks a Python number, `is_array` an array without dimensions.

    `labels` are those of a Series or DataFrame.
    """

    value: Operand
    aval: Aval
    weak: bool
    is_array: bool = False
    labels: Labels | None = None


class LeafError(Exception):
    """A value that cannot be a leaf; whoever knows where it stands says so in the error for the user."""

    def __init__(self, kind: type[FnadError], what: str, remedy: str) -> None:
        super().__init__(what)
        self.kind, self.what, self.remedy = kind, what, remedy

    def at(self, path: str, source: Source | None) -> FnadError:
        """The error for the user."""
        is_self = self.kind is ArgumentTypeError and path == "self"
        return self.kind(f"{path} {self.what}", source=source, remedy=METHOD if is_self else self.remedy)


# ---- containers ----------------------------------------------------------------------------------------------------


@cache
def pytrees() -> ModuleType:
    """optree, set up; loaded at the first call, which takes a quarter off the time of `import fnad`."""
    if _IS_OVER.is_set():
        if current_thread() is not main_thread():
            raise SystemExit
        raise ExitError(
            "fnad is called while Python ends, after optree has forgotten all containers",
            remedy="call atexit.register after the first call of fnad, or after import optree",
        )
    import optree  # noqa: PLC0415

    ordered = optree.dict_insertion_ordered(True, namespace=NAMESPACE)
    ordered.__enter__()  # a function may depend on the order of keys, so structures differ where it does
    atexit.register(_end, ordered)  # before optree's own function
    return optree


_IS_OVER = Event()


def _end(ordered: AbstractContextManager[None]) -> None:
    """Make calls of fnad errors, because optree works only until Python ends."""
    _IS_OVER.set()
    pytrees.cache_clear()
    end_threads()
    ordered.__exit__(None, None, None)


def flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], Structure]:
    """The leaves of a pytree, unchecked, and its structure, in which dataclasses are containers."""
    values, structure = of_trees("tree_flatten", tree, is_leaf=is_leaf)
    return flatten(tree, is_leaf) if are_records(values) else (values, structure)


def of_trees(name: str, *args: Any, **options: Any) -> Any:
    """A function of optree on pytrees; raise `ArgumentTypeError` for one of too many levels."""
    try:
        return getattr(pytrees(), name)(*args, **options, namespace=NAMESPACE)
    except RecursionError as error:
        if "flattening" not in str(error):  # that of a function which is called on leaves
            raise
        raise nested_too_deeply("pytree") from error


def are_records(values: Sequence[Any]) -> bool:
    """True if there are dataclasses among leaves; from now on these are containers (`dataclass_trees.py`)."""
    return dataclass_trees.are_records(values, pytrees())


def map_leaves(
    function: Callable[..., Any], tree: Any, *others: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    """The pytree of `function` applied to corresponding leaves, in the containers of the first pytree."""
    values, structure = flatten(tree, is_leaf)
    return unflatten(structure, map(function, values, *map(structure.flatten_up_to, others)))


def unflatten(structure: Structure, leaves: Iterable[Any]) -> Any:
    """The pytree of a structure and leaves."""
    return structure.unflatten(leaves)


def leaves_of(trees: Sequence[Any], names: Callable[[int], str]) -> tuple[list[Leaf], Structure]:
    """The leaves of several pytrees, as programs receive them, and the structure of the sequence as a tuple.

    Errors call tree i `names(i)`.
    """
    trees = tuple(trees)
    values, structure = flatten(trees)
    leaves: list[Leaf] = []
    for value in values:
        try:
            leaves.append(leaf_of(value))
        except LeafError as error:
            raise error.at(path(trees, len(leaves), names), current_source()) from None
    for i, labels in labels_of(values).items():
        leaves[i] = leaves[i]._replace(labels=labels)
    return leaves, structure


def path(trees: Any, index: int, names: Callable[[int], str]) -> str:
    """The path of a leaf in several pytrees: `w['W'][0]`."""
    return paths(trees, names)[index]


def paths(trees: Any, names: Callable[[int], str]) -> list[str]:
    """The paths of all leaves of several pytrees."""
    return [accessor[1:].codify(names(accessor[0].entry)) for accessor in of_trees("tree_accessors", trees)]


def structure_text(structure: Structure) -> str:
    """A structure as text, with a star for each leaf: `{'W': *, 'b': *}`."""
    return str(structure).removeprefix("PyTreeSpec(").removesuffix(")").removesuffix(f", namespace={NAMESPACE!r}")


# ---- leaves --------------------------------------------------------------------------------------------------------


def leaf_of(value: Any) -> Leaf:
    """A value as a leaf; raise `LeafError` where it is none."""
    value = UPWARD.number_of_size(value) if is_size(value) else value
    if isinstance(value, Tracer) and tracing_builder([value]):
        return Leaf(value.symbol, value.aval, value.is_weak, is_zero_dimensional(value))
    array = array_of(value)
    return Leaf(array, aval_of(array), is_weak(value), is_zero_dimensional(value))


def is_weak(value: Any) -> bool:
    """True if a value is a Python number, whose dtype gives way to that of an array beside it."""
    return isinstance(value, NUMBERS) and type(value) in PYTHON_DTYPES


def is_zero_dimensional(value: Any) -> bool:
    """True if a value is an array without dimensions, which NumPy tells apart from a number."""
    return isinstance(value, np.ndarray) and not value.shape


def array_of(value: Any) -> Array:
    """A value as an array of a supported dtype in native byte order; raise `LeafError` where it is none."""
    if type(value) is np.ndarray and value.dtype in NAMES:
        return value
    if isinstance(value, Tracer):
        tracing_builder([value])  # raises: a traced value that is not looked for here is one that was kept
    if isinstance(value, (np.ndarray, np.generic)):
        return _native_array(value)
    if isinstance(value, NUMBERS):  # other classes may lack a hash
        if type(value) in PYTHON_DTYPES:
            return _number(value, PYTHON_DTYPES[type(value)])
        raise LeafError(
            ArgumentTypeError,
            f"is of type {type_name(value)}, which follows other rules than a number",
            "give float(x) or int(x)",
        )
    if is_on_device(value):
        return _adopted(value)
    if isinstance(getattr(value, "to_numpy", None), MethodType):  # a Series or DataFrame
        return _values(value)
    if _is_memory(value):
        return _native_array(_shared(value))
    is_array = hasattr(value, "__array__") and not isinstance(value, Mapping)  # datasets of xarray
    remedy = "give np.asarray of it" if is_array else CONTAINERS
    raise LeafError(ArgumentTypeError, f"is of type {type_name(value)}, not an array or a number", remedy)


def _is_memory(value: Any) -> bool:
    """True for an array of another library that leaves the meaning of NumPy functions to NumPy."""
    kind = type(value)
    if hasattr(kind, "__array_function__") or hasattr(kind, "__array_ufunc__"):
        return False
    is_array = hasattr(kind, "__array__") and hasattr(value, "shape") and hasattr(value, "dtype")
    return is_array or _exports_memory(value)


def _exports_memory(value: Any) -> bool:
    """True if a value gives its memory to other libraries without a copy."""
    return hasattr(type(value), "__dlpack__") or _interface(value) is not None


def _interface(value: Any) -> dict[str, Any] | None:
    """The array interface of a value, which classes have as a property."""
    found = None if isinstance(value, type) else getattr(value, "__array_interface__", None)
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None


def plain(value: Any) -> Any:
    """A leaf as a function receives it: NumPy's array in the place of another library's."""
    if isinstance(value, (np.ndarray, np.generic, Tracer)) or not _exports_memory(value):
        return value
    with suppress(LeafError):
        if _is_memory(value) and not is_on_device(value):
            return _native_array(_shared(value))
    return value


def _has_dlpack_alone(value: Any) -> bool:
    return not any(hasattr(value, name) for name in ("__array__", "__array_interface__"))


def _shared(value: Any) -> Array:
    """The memory of another library's array as an array, without a copy if the library permits it."""
    if (_interface(value) or {}).get("mask") is not None:
        what = f"is of type {type_name(value)}, whose __array_interface__ has a mask"
        raise LeafError(ArgumentTypeError, what, "give its data, and the mask as an argument of its own")
    try:
        return np.from_dlpack(value) if _has_dlpack_alone(value) else np.asarray(value)
    except Exception as error:  # noqa: BLE001  whatever the library raises
        what = f"is of type {type_name(value)}, which gives NumPy no array: {str(error).partition(chr(10))[0]:.100}"
        raise LeafError(ArgumentTypeError, what, "give the array that NumPy is to compute with") from None


def _adopted(value: Any) -> Array:
    try:
        array = adopted(value)
    except PlacementError as error:
        raise LeafError(PlacementError, error.what, error.remedy or "") from None
    if array.dtype not in NAMES:
        raise LeafError(DtypeError, f"has dtype {array.dtype}, which is not supported", NAMED)
    return array


def _values(table: Any) -> Array:
    # The methods of polars' tables are others: `std` has n - 1 in it, and passes over what is missing.
    if hasattr(table, "std") and not is_labelled(table):
        what = f"is of type {type_name(table)}, whose methods are not those of an array"
        raise LeafError(ArgumentTypeError, what, "give its values, x.to_numpy(), which have NumPy's")
    values = callee(table.to_numpy)()
    if values.dtype.kind in "biufc":
        return _native_array(values)
    what = f"is of type {type_name(table)} with values of dtype {values.dtype}, not numbers alone"
    raise LeafError(ArgumentTypeError, what, "give its columns of numbers, df[names].to_numpy()")


def _native_array(value: Any) -> Array:
    if isinstance(value, np.ndarray) and type(value) not in (np.ndarray, np.memmap):
        raise LeafError(
            ArgumentTypeError,
            f"is of type {type_name(value)}, which follows other rules than an ordinary array",
            way_out_of(type(value)),
        )
    native = in_native_order(value.dtype)
    if native.kind == "O":
        others = sorted({type_name(x) for x in value.flat if not isinstance(x, tuple(PYTHON_DTYPES))})
        what = f"has dtype object{', and has ' + ', '.join(others) + ' in it' if others else ''}"
        raise LeafError(DtypeError, what, "write np.array(x, dtype=float), with np.nan in the place of None")
    if native not in NAMES:
        raise LeafError(DtypeError, f"has dtype {value.dtype}, which is not supported", NAMED)
    return np.asarray(value, dtype=native)


def _number(value: Any, dtype: np.dtype[Any]) -> Array:
    try:
        return np.array(value, dtype)
    except OverflowError:
        raise LeafError(DtypeError, f"is {value}, which does not fit i64", "pass it as a float") from None


def to_user(array: Array) -> Any:
    """A result as NumPy's own functions do: a scalar where there are no dimensions; those of devices have none."""
    return array if array.ndim or type(array) is not np.ndarray else array[()]


# ---- names, for errors and programs --------------------------------------------------------------------------------


def as_float(leaf: Leaf, name: str) -> str:
    """The float in the place of an integer or bool that is called `name`, as a user would write it."""
    if leaf.weak and isinstance(leaf.value, np.ndarray):
        return repr(float(leaf.value))
    return f"{name}.astype(float)"


def type_name(value: Any) -> str:
    """The name of a value's type, as a user would write it; the aval of a traced value."""
    if isinstance(value, Tracer):
        return str(value.aval)
    kind = type(value)
    module = getattr(kind, "__module__", "builtins")
    return kind.__qualname__ if module == "builtins" else f"{module}.{kind.__qualname__}"


def function_name(function: Function) -> str:
    """The name of a function in errors and programs."""
    return getattr(function, "__name__", type(function).__name__)


def check_function(function: object, transform: str) -> None:
    """Raise `ArgumentTypeError` where the first argument of a transform is no function."""
    if not callable(function):
        raise ArgumentTypeError.here(
            f"the first argument of {transform} has to be a function, not {type_name(function)}",
            remedy=f"give the function itself, not its result: {transform}(f, ...)",
        )


def source_of(function: Function) -> Source | None:
    """The place where a function is defined, if it is written in Python."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return Source(code.co_filename, code.co_firstlineno, code.co_name) if isinstance(code, CodeType) else None


class NamedArguments:
    """A function whose arguments have these names in errors."""

    argument_names: tuple[str, ...]


def argument_name(function: Function, position: int) -> str:
    """The name of a positional argument, or `args[i]` where there is none to be had."""
    if isinstance(function, NamedArguments):
        return function.argument_names[position]
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return f"args[{position}]"
    if position < len(parameters) and parameters[position].kind <= inspect.Parameter.POSITIONAL_OR_KEYWORD:
        return parameters[position].name
    return f"args[{position}]"

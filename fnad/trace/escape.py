"""The errors when Python or NumPy reads a traced value's numbers, with the line and the way out.

NumPy sometimes puts an exception of its own in the place of the one that a conversion raised (`c[0] = t` ends in
"setting an array element with a sequence"). So the last escape is kept with its line, and the trace raises it when
another exception comes from there.
"""

from __future__ import annotations

import inspect
import linecache
import re
import sys
import threading
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NoReturn, cast

import numpy as np

from fnad.codes import original_of
from fnad.errors import (
    ArgumentTypeError,
    FnadError,
    MissingAttributeError,
    MutationError,
    ReadOnlyError,
    ShapeError,
    TracerEscapeError,
    UnknownKeywordError,
    UnsupportedFunctionError,
    UsedAfterTraceError,
)
from fnad.ir.builder import NOT_KEPT, is_tracing, not_kept
from fnad.ir.program import Source
from fnad.ir.symbol import Symbol
from fnad.ir.types import BOOL, Aval
from fnad.numpy.namespace import MAKING
from fnad.numpy.operands import CHOOSE, NUMBERS
from fnad.trace.capture import APART
from fnad.trace.conversion import converted_code, no_source
from fnad.trace.libraries import is_library, package_of
from fnad.trace.scipy_call import compiled_remedy, scipy_remedy
from fnad.trace.source import (
    current_source,
    frames_of_error,
    library_frames,
    places_passed,
    source_of_error,
    text_at,
    user_frame,
    user_line,
)
from fnad.words import WORDS, alike, word_for_keyword

ARRAY = "NumPy's functions take traced values as they are; stack several with np.stack or fnad.numpy.array"
NUMBER = (
    "NumPy's functions take traced values, and so do float and those of math where a name of theirs is called; "
    "fnad.register_rule gives other functions a rule, fnad.callback calls them without a derivative"
)
INDEX = (
    "sizes and loop counts have to be known while tracing; to read an ordinary array at a traced index, write "
    "fnad.numpy.asarray(table)[i]"
)
UNDECIDED = (
    "it depends on arguments that have no numbers yet, as those of the body of a loop or of many rows of vmap: choose "
    "with fnad.cond or np.where, repeat with fnad.while_loop or fnad.fori_loop"
)
TEXT = (
    "it depends on arguments that have no numbers yet, as those of the body of a loop or of many rows of vmap: show it "
    "with fnad.callback(print, x)"
)
HASH = (
    "sets, the keys of dicts and the arguments of functools.lru_cache are found by value: choose with np.where, keep "
    "what is traced as a value of the dict, and call what is under a cache that is an error, f.__wrapped__(x)"
)
TABLE = (
    "a Series or DataFrame is traced as the array of its values: pass what is needed of it, df['a'].to_numpy(), as "
    "arguments of their own"
)
TABLES = {
    *("apply", "columns", "dropna", "ewm", "fillna", "groupby", "iat", "iloc", "index", "isna", "items", "iterrows"),
    *(
        "itertuples",
        "loc",
        "map",
        "notna",
        "pct_change",
        "rolling",
        "shift",
        "to_dict",
        "to_list",
        "to_numpy",
        "values",
    ),
}
"""The attributes of Series and DataFrames that arrays do not have."""
DRAWN = (
    "NumPy draws with ordinary numbers: draw standard ones and compute with these, as in loc + scale * "
    "rng.standard_normal(n), or draw with fnad.random"
)
RECORDS = "records hold ordinary numbers: keep an array for each field, as in a dict, {'a': x}"
OTHERS = {
    "numpy.ma.": f"numpy.ma computes on ordinary arrays: {APART}",
    "pandas.": "pandas computes on arrays of its own: take the values before, s.to_numpy(), and compute with NumPy",
    "numpy._core.records.": RECORDS,
    "numba.stencils.": "write the stencil with slices, x[:-2] + x[2:]",
    "statistics.": "statistics computes with Python's floats: write np.mean, np.std and scipy.stats.norm.cdf",
}
"""The way out of libraries that traced values cannot be given to, by their modules."""
COMPILED = "take the class without jitclass: what its instances compute is traced then"
MEMORY = (
    "a traced value has no memory while tracing: return it from the traced function, and ask the result; its shape, "
    "dtype, size and ndim are known"
)
OPERAND = "operators take traced values with arrays, numbers and lists of these"
OWN = "keep it in a variable of its own"
AXIS = "np.atleast_1d makes an array of one element of it"
REFUSALS = {
    **dict.fromkeys(("as an integer", "must be integers", "by non-int"), "write int(x) for a number x"),
    **dict.fromkeys(
        ("returned non-", "must return a"), "take the number from an attribute or a method of the object, as obj.value"
    ),
    **dict.fromkeys(("no len()", "not iterable", "not subscriptable", "non-sequence", "cannot unpack"), AXIS),
    "should return bool": "convert what it returns: return bool(x > 0)",
    "descriptor '": "call the method of the value, x.sum(), x.__mul__(y), not that of its class",
    "expected numpy.ndarray": (
        "compiled code takes ordinary arrays: compute with NumPy's functions, as np.bincount(groups, x) for sums over "
        "groups, or call it by fnad.callback"
    ),
    "item assignment": "a number cannot be written to: bind its name to the new value",
}
"""The way out of what Python refuses to do with a traced value, by its words."""
ATTRIBUTES = {
    "resize": "write np.resize(x, shape)",
}
"""The way out of attributes of arrays that have to do with more than memory."""
TRACED = re.compile(
    r"(\ban? )?'?Tracer'?( object)?|(?<=must return a float, not )float|(?<=must return an int, not )int"
)
"""The names of a traced value in Python: its class, or the class that it has for user code."""
SIGNATURES = ("No matching signature found", "Function call with ambiguous argument types")
"""The messages of Cython if it has no function for the classes of the arguments."""
PICKLE = "return it from the traced function, and pickle the result"
STORE = (
    "make the array with fnad.numpy (zeros, empty, full, array) in place of numpy, or from a traced one with "
    "np.zeros_like(x)"
)
OF_PACKAGE = (
    "call the package's function on results, after the traced function, or inside it by fnad.callback(function, x)"
)


class _Last(threading.local):
    """The last escape with its line, and in `asked` the last error of a C function that may write numbers."""

    error: FnadError | None = None
    line: tuple[str, int] | None = None
    asked: FnadError | None = None


_LAST = _Last()


def number_asked(aval: Aval, what: str) -> FnadError:
    """The error for float(x), int(x), complex(x), x.item(), x.tolist()."""
    return _asked(aval, what, scipy_remedy(library_frames()) or _remedy_of_others() or NUMBER, of_arrays=False)


def truth_asked(aval: Aval) -> FnadError:
    """The error for a branch on a traced value that has no value yet."""
    return _escape(aval, "its truth value", scipy_remedy(library_frames()) or UNDECIDED)


def truths_asked(aval: Aval) -> FnadError:
    """The error for a branch on a traced array of several elements, or none: NumPy's words."""
    several = "an array with more than one element is ambiguous. Use a.any() or a.all()"
    none = "an empty array is ambiguous. Use `array.size > 0` to check that an array is not empty."
    what = f"The truth value of {several if aval.size else none}"
    remedy = f"it is of aval {aval}; choose element by element with np.where(condition, a, b)"
    return ShapeError.here(what, remedy=remedy)


def integer_asked(aval: Aval, what: str) -> FnadError:
    """The error for the integer of a traced value that has no value yet: an index, a loop count."""
    return _asked(aval, what, scipy_remedy(library_frames()) or UNDECIDED, of_arrays=False)


def index_asked(aval: Aval) -> FnadError:
    """The error for what is no integer as an index, a size or a loop count, and for arrays as an index."""
    if aval.dtype.kind not in "biu" and is_tracing():
        what = f"a traced value of aval {aval} is no integer, and so no index, size or loop count"
        return _kept(ArgumentTypeError.here(what, remedy="write int(x) for a number x"))
    return _asked(aval, "an index", CHOOSE if aval.dtype == BOOL and aval.shape else INDEX, of_arrays=False)


def array_asked(aval: Aval) -> FnadError:
    """The error for np.asarray(x), for a traced value written into an ordinary array, or as its index."""
    return _asked(aval, "an ordinary array", _array_remedy())


def drawn(aval: Aval) -> FnadError:
    """The error for a traced parameter of a draw from a generator of NumPy."""
    return _asked(aval, "a number to draw with", DRAWN)


def _array_remedy() -> str:
    scipys = scipy_remedy(library_frames()) or compiled_remedy(user_frame())
    return scipys or _remedy_of_others() or ARRAY


def _remedy_of_others() -> str | None:
    """The way out of a call of `numpy.ma` or pandas, which compute on arrays of their own."""
    frame = user_frame()
    modules = [f.f_globals.get("__name__", "") for f in (*library_frames(), *([] if frame is None else [frame]))]
    return next((remedy for name, remedy in OTHERS.items() if any(f"{m}.".startswith(name) for m in modules)), None)


def hash_asked(aval: Aval) -> FnadError:
    """The error for a traced value in a set, as a key of a dict or an argument of a cached function."""
    return _escape(aval, "its hash", write_it_in_a_file() or HASH, of_arrays=False)


def text_asked(aval: Aval) -> FnadError:
    """The error for the text of a traced value that has no value yet, where it is computed with."""
    return _escape(aval, "its text", TEXT)


def pickle_asked(aval: Aval) -> FnadError:
    """The error for pickle.dumps(x)."""
    return _escape(aval, "its pickle", PICKLE)


def axis_asked(what: str) -> FnadError:
    """The error for the length or the elements of what has no axis."""
    return ArgumentTypeError.here(what, remedy=AXIS)


def modulus_given() -> FnadError:
    """The error for pow(x, y, z)."""
    what, remedy = "pow(x, y, z) has no rule for traced values", "write x**y % z where x**y fits the dtype"
    return UnsupportedFunctionError.here(what, remedy=remedy)


def attribute_asked(aval: Aval, kind: type[Any], name: str) -> Callable[..., NoReturn]:
    """Raise the error for an attribute that a traced value does not have; for a method of numbers, when it is called.

    It is an `AttributeError` where what it stands for, of this class, has none either: `hasattr` is answered by it.
    """
    named = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    if not hasattr(kind, name):
        remedy = WORDS.get(f"x.{name}") or _attribute_meant(kind, named, name)
        raise MissingAttributeError.here(f"a traced value has no {name!r}", remedy=remedy)
    if any(frame.f_globals.get("__name__", "").startswith("numba.") for frame in library_frames()):
        raise _escape(aval, f"its {name} by Numba", _remedy_of_others() or COMPILED)
    if callable(getattr(kind, name)) and any(hasattr(number, name) for number in NUMBERS):
        return partial(_raise_number_asked, aval, f"its {name}")
    what = f"{named}.{name} has no rule for traced values"
    raise UnsupportedFunctionError.here(
        what, remedy=ATTRIBUTES.get(name) or scipy_remedy(library_frames()) or _remedy_of_others() or MEMORY
    )


@lru_cache(1024)  # libraries ask every argument for attributes of their own
def _attribute_meant(kind: type[Any], named: str, name: str) -> str:
    if callable(getattr(np, name, None)):
        return f"write np.{name}(x)"
    if name in TABLES:
        return TABLE
    near = alike(name, dir(kind))
    return f"did you mean x.{near}?" if near else f"it has the attributes and methods of {named}"


def _raise_number_asked(aval: Aval, what: str, *_: Any) -> NoReturn:
    raise number_asked(aval, what)


def _asked(aval: Aval, what: str, remedy: str, *, of_arrays: bool = True) -> FnadError:
    """The error where a function was asked that something may stand for."""
    _LAST.asked = _escape(aval, what, write_it_in_a_file() or remedy, of_arrays=of_arrays)
    return _LAST.asked


def write_it_in_a_file() -> str | None:
    """The way out in a user function without source; None in any other."""
    frame = user_frame()
    if frame is None or not frame.f_code.co_flags & inspect.CO_NEWLOCALS:
        return None
    code = frame.f_code
    module = sys.modules.get(frame.f_globals.get("__name__", ""))
    if is_library(getattr(module, "__file__", None) or ""):  # SciPy makes functions of texts too
        return None
    if original_of(code) is not code or converted_code(code, frame.f_globals) is not None:
        return None
    way = "There lists, float, math and SciPy take no traced values: use fnad.numpy, or write it in a file"
    return f"{no_source(code)}. {way}"


def _escape(aval: Aval, what: str, remedy: str, *, of_arrays: bool = True) -> FnadError:
    """The error where a traced value is asked for what numbers have, and arrays too if it is `of_arrays`."""
    if not is_tracing():
        return used_after_trace(None)
    error = TracerEscapeError.here(
        f"a traced value of aval {aval} was asked for {what}: it has no numbers while tracing", remedy=remedy
    )
    error.is_final = of_arrays or not aval.shape
    return _kept(error)


def nested_too_deeply(what: str) -> ArgumentTypeError:
    """The error for containers of more levels than Python's recursion limit."""
    return ArgumentTypeError.here(
        f"a {what} is nested too deeply, or contains itself",
        remedy="keep numbers in arrays, or in one list, rather than in containers within containers",
    )


def used_after_trace(value: Symbol | None) -> UsedAfterTraceError:
    """The error for a traced value that was kept, if it is known which."""
    remedy = NOT_KEPT if value is None else not_kept(value)
    return UsedAfterTraceError.here("a traced value was used outside its trace", remedy=remedy)


def stored(aval: Aval) -> FnadError:
    """The error for a traced value, or one at a traced index, that is written into an ordinary array."""
    what = f"a traced value of aval {aval} was written into an ordinary array"
    others = RECORDS if re.search(r"\[([\"'])\w+\1\] *=[^=]", user_text()) else STORE
    error = MutationError.here(what, remedy=write_it_in_a_file() or out_of_package(others))
    return _kept(MAKING.refuse(error))


def read_only(kind: type[FnadError] = ReadOnlyError) -> FnadError:
    """The error for a write that NumPy refuses, too: a `ValueError` for arrays."""
    remedy = "NumPy's scalars, broadcasts and diagonals are: write into a copy, or into the array itself"
    return kind.here("assignment destination is read-only", remedy=out_of_package(remedy))


def out_of_package(remedy: str) -> str:
    """A remedy for the user's code; where the code of a package is at fault, one that needs no change there."""
    source = current_source()
    return OF_PACKAGE if source is not None and package_of(source.file) else remedy


def user_text() -> str:
    """The line of user code."""
    source = current_source()
    return linecache.getline(source.file, source.line) if source else ""


# ---- escapes that NumPy hides ----------------------------------------------------------------------------------------


def _kept(error: FnadError) -> FnadError:
    source = current_source()
    _LAST.error, _LAST.line = error, (source.file, source.line) if source else None
    return error


def forget_escape() -> None:
    """Begin a trace, which has nothing to do with what happened before."""
    _LAST.error = _LAST.line = _LAST.asked = None


# Note [Errors that user code handles]
# `u.put(0, t)`, `u.flat = t` or `map(u.__setitem__, places, ts)` of an ordinary array `u` calls C code, which reads the
# number of `t`. This read is an error, which does not show that the call was a write. If the error leaves the function,
# the function runs again with `u` traced. If an `except` clause of user code handles the error, the rest of the run
# lacks the write, so the function runs again, too. In the second run the error may be handled: `u` is traced there.
# Where a number would not have been an error, as in `if x > 0` for a row of `vmap`, the run would go on in the `except`
# clause, which Python does not: the clause raises the error again, if it does not name a class of fnad.


def handled(error: BaseException | None, kinds: Any) -> None:
    """Have the function run again, or raise the error again, if user code handles it by its classes."""
    if error is None:
        return
    for part in error.exceptions if isinstance(error, BaseExceptionGroup) else ():
        handled(part, kinds)
    behind, asked = (_behind(error) if isinstance(error, Exception) else None) or error, _LAST.asked
    if asked is not None and asked in (error, behind) and not MAKING.is_traced:
        MAKING.refuse(asked)
    elif getattr(behind, "is_final", False) and not _is_by_name(error, kinds):
        raise behind


def _is_by_name(error: BaseException, kinds: Any) -> bool:
    """True if one of the classes is a class of fnad, and that of the error."""
    if isinstance(kinds, tuple):
        return any(_is_by_name(error, kind) for kind in cast("tuple[Any, ...]", kinds))
    return issubclass(kinds, FnadError) and isinstance(error, kinds)


def hidden_escape(error: Exception, source: Source | None = None) -> FnadError | None:
    """The escape that an exception came in the place of, if its line is that of the last escape."""
    escape = _behind(error, source)
    _LAST.error = _LAST.line = None
    return escape


def _behind(error: Exception, source: Source | None = None) -> FnadError | None:
    """The last escape, if another exception is at its line."""
    if isinstance(error, FnadError) or _LAST.error is None:
        return None
    return _LAST.error if _LAST.line == ((source.file, source.line) if source else user_line(error)) else None


# ---- what Python itself refuses --------------------------------------------------------------------------------------


def refused(error: Exception) -> FnadError | None:
    """The error for what Python says it cannot do with a traced value: an operand, `memoryview(x)`."""
    if isinstance(error, AttributeError):
        return _attribute_set(error)
    if isinstance(error, FnadError) or not isinstance(error, TypeError):
        return _no_array(error)
    what, source = TRACED.sub("a traced value", str(error)), source_of_error(error)
    if (word := word_for_keyword(what)) and is_public(what.partition("(")[0]):
        return UnknownKeywordError(what, source=source, remedy=word)
    if "JSON serializable" in what:
        return TracerEscapeError(f"{what}, if it is a traced value", source=source, remedy=PICKLE)
    if what.endswith("not callable") and (word := _word_for_call(error)):
        return ArgumentTypeError(what, source=source, remedy=word)
    if (compiled := _refused_by_compiled_code(what, source)) is not None:
        return compiled
    if what == str(error):
        return None
    if (found := scipy_remedy(frames_of_error(error))) is not None:
        return TracerEscapeError(what, source=source, remedy=found)
    if "bytes-like" in what:
        return TracerEscapeError(what, source=source, remedy=MEMORY)
    remedy = next((remedy for words, remedy in REFUSALS.items() if words in what), OPERAND)
    return ArgumentTypeError(what, source=source, remedy=remedy)


def _no_array(error: Exception) -> FnadError | None:
    """The error for an object whose `__array__` returned a traced value."""
    if str(error) != "object __array__ method not producing an array":
        return None
    what = "NumPy takes an ordinary array of an object, and its method __array__ returned a traced value, or no array"
    return TracerEscapeError(what, source=source_of_error(error), remedy="call the method: np.sum(obj.__array__())")


def _refused_by_compiled_code(what: str, source: Source | None) -> FnadError | None:
    """The error for what compiled code says that looks at the classes of its arguments: Cython's, that of polars."""
    if what.startswith(SIGNATURES):
        what = "compiled code has no signature for its arguments: it takes ordinary arrays, if one is a traced value"
        return TracerEscapeError(what, source=source, remedy=ARRAY)
    if re.fullmatch(r"'(\w+)' object is not an instance of '\1'", what):  # of what has the name of an array's class
        what = "compiled code takes ordinary arrays, and was given a traced value"
        remedy = "give NumPy's functions the values of a table, s.to_numpy()"
        return TracerEscapeError(what, source=source, remedy=remedy)
    return None


def _word_for_call(error: Exception) -> str | None:
    """The way out of the call of an attribute that is no method, as `x.size(0)`."""
    texts = [text_at(place.tb_frame.f_code, place.tb_lasti) for place in places_passed(error)[-1:]]
    found = re.findall(r"\.(\w+)\(", "".join(texts))
    return next((WORDS[f"{name}()"] for name in reversed(found) if f"{name}()" in WORDS), None)


def _attribute_set(error: AttributeError) -> FnadError | None:
    """The error for `x.name = value`."""
    match = re.match(r"'Tracer' object has no attribute '(\w+)'", str(error))
    if match is None:
        return None
    what, word = f"a traced value takes no attribute {match[1]!r}", WORDS.get(f"x.{match[1]}", OWN)
    return MissingAttributeError(what, source=source_of_error(error), remedy=word)


def is_public(name: str) -> bool:
    """True if NumPy or fnad has a function of this name."""
    own = (sys.modules.get(module) for module in ("fnad", "fnad.nn"))
    return any(hasattr(module, name) for module in (np, *own))

"""Code that is not converted reads the numbers of a traced value: the exact messages, with line and way out."""

import contextlib
import copy
import inspect
import json
import pickle
import struct

import numpy as np
import pytest
import scipy.signal
import scipy.stats

import fnad
from fnad.errors import ArgumentTypeError, IntegerRangeError, MutationError, TracerEscapeError, UnsupportedFunctionError
from tests.numpy.against_numpy import check, traced

S = np.float64(0.5)
K = np.int64(1)
V = np.array([1.0, 2.0, 3.0])
TABLE = np.arange(3.0)

NUMBER = (
    "NumPy's functions take traced values, and so do float and those of math where a name of theirs is called; "
    "fnad.register_rule gives other functions a rule, fnad.callback calls them without a derivative"
)
UNDECIDED = (
    "it depends on arguments that have no numbers yet, as those of the body of a loop or of many rows of vmap: choose "
    "with fnad.cond or np.where, repeat with fnad.while_loop or fnad.fori_loop"
)
FILE = (
    "<lambda> has no source that is what runs: its text is in no file. There lists, float, math and SciPy take no "
    "traced values: use fnad.numpy, or write it in a file"
)
SCIPY = "SciPy computes on ordinary arrays"
STORE = (
    "make the array with fnad.numpy (zeros, empty, full, array) in place of numpy, or from a traced one with "
    "np.zeros_like(x)"
)


def unconverted(text):
    """Return a function of code without source, which reaches only the protocols of NumPy and Python."""
    return eval(compile(text, "no_source.py", "eval"), {"np": np, "TABLE": TABLE})


def where(function, line=-1):
    """Return how a message names a line of a function, the last one if not said otherwise."""
    lines, start = inspect.getsourcelines(function)
    at = range(start, start + len(lines))[line]
    return f"  at test_escapes.py:{at} in {function.__name__}:  {lines[line].strip()}"


def message(error, function, *args):
    with pytest.raises(error) as raised:
        traced(function, *args)
    assert type(raised.value) is error
    return str(raised.value)


ASKED = {
    "its float": (unconverted("lambda t: float(t)"), FILE),
    "its float, for a format": (lambda t: struct.pack("d", t), NUMBER),
    "its int": (unconverted("lambda t: int(t)"), FILE),
    "its complex": (unconverted("lambda t: complex(t + 1j)"), FILE),
    "its truth value": (lambda t: 1 if t > 0 else 2, UNDECIDED),
    "an ordinary array": (unconverted("lambda t: np.asarray(t)"), FILE),
    "its pickle": (pickle.dumps, "return it from the traced function, and pickle the result"),
}


@pytest.mark.parametrize("what", ASKED)
def test_what_is_asked(what):
    function, remedy = ASKED[what]
    what = what.partition(",")[0]
    first, place, last = message(TracerEscapeError, lambda t: function(t), S).split("\n")
    aval = {"its truth value": "bool[]", "its complex": "c128[]"}.get(what, "f64[]")
    assert first == f"a traced value of aval {aval} was asked for {what}: it has no numbers while tracing"
    assert place.startswith(("  at test_escapes.py:", "  at no_source.py:1 in <lambda>"))
    assert last == f"  {remedy}"


def test_an_escape_is_reported_at_its_line():
    def f(t):
        return struct.pack("d", t)

    assert message(TracerEscapeError, f, S).split("\n")[1] == where(f)


@pytest.mark.parametrize(
    "branch", [unconverted("lambda t: min(t, 1.0)"), lambda t: sorted([t, 1.0]), lambda t: t in [1.0, 2.0], bool]
)
def test_branches_that_cannot_be_followed_are_refused(branch):
    assert UNDECIDED in message(TracerEscapeError, branch, S)


def test_json_of_a_traced_value_is_refused_with_a_remedy():
    def f(t):
        return json.dumps({"t": t})

    text = message(TracerEscapeError, f, S)
    assert "is not JSON serializable" in text
    assert text.endswith(f"{where(f)}\n  return it from the traced function, and pickle the result")


HASH = (
    "sets, the keys of dicts and the arguments of functools.lru_cache are found by value: choose with np.where, keep "
    "what is traced as a value of the dict, and call what is under a cache that is an error, f.__wrapped__(x)"
)


@pytest.mark.parametrize(
    "hashed",
    [
        hash,
        lambda t: t * 2 if t in {1.0} else t,
        lambda t: {1.0: 5.0}.get(t, 0.0),
        lambda t: {t: 1.0},
        lambda t: {t},
        lambda t: {(1.0, t): 1.0},
    ],
)
@pytest.mark.parametrize("value", [S, V])
def test_the_hash_of_a_traced_value_is_refused_at_its_line(hashed, value):
    text = message(TracerEscapeError, lambda t: hashed(t), value)
    assert text.split("\n")[0].endswith(" was asked for its hash: it has no numbers while tracing")
    assert text.split("\n")[1].startswith("  at test_escapes.py:")
    assert text.endswith(HASH)


def test_hash_of_what_is_known():
    check(lambda t: [t * {3.0: 2.0}.get(np.ones_like(t) * 3.0, 7.0)], S)


@pytest.mark.parametrize(
    "text", ["np.array([t, t])", "np.float64(t)", "np.int64(t)", "TABLE.dot(t)", "np.append([[t]], [[t]], axis=0)"]
)
def test_constructors_of_c_refuse_traced_values(text):
    assert message(TracerEscapeError, unconverted(f"lambda t: {text}"), S).endswith(FILE)


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("signal.find_peaks", lambda v: scipy.signal.find_peaks(v)),
        ("stats.genhyperbolic.pdf", lambda v: scipy.stats.genhyperbolic.pdf(v, 1.0, 1.0, 0.3)),
        ("stats.genhyperbolic.pdf", lambda v: scipy.stats.genhyperbolic(1.0, 1.0, 0.3).pdf(v)),
        ("stats.kendalltau", lambda v: scipy.stats.kendalltau(v, v)),
    ],
)
def test_scipy_without_a_rule(name, function):
    text = message(TracerEscapeError, lambda v: function(v), V)
    assert text.endswith(f"scipy.{name} has no rule for traced values, and {SCIPY}: use NumPy's functions")


def test_frompyfunc_of_a_traced_value_is_refused_with_a_remedy():
    text = message(UnsupportedFunctionError, lambda v: np.frompyfunc(abs, 1, 1)(v), V)
    assert text.startswith("numpy.frompyfunc(abs, ...) returns an array of objects")
    assert text.endswith("np.vectorize calls a function as often, and returns an array of numbers")


@pytest.mark.parametrize("index", [K, np.array([1, 2])])
def test_a_table_at_a_traced_index(index):
    check(lambda k: TABLE[k], index)
    assert message(TracerEscapeError, unconverted("lambda k: TABLE[k]"), index).endswith(FILE)


def test_a_float_is_no_index():
    def f(t):
        return range(t)

    what = "a traced value cannot be interpreted as an integer"
    assert message(ArgumentTypeError, f, S) == f"{what}\n{where(f)}\n  write int(x) for a number x"


def test_traced_sizes_are_refused_with_a_remedy():
    assert message(TracerEscapeError, lambda k: range(k), K).endswith(UNDECIDED)
    remedy = "shapes are fixed in the body of a loop and in rows: pass an ordinary int"
    for shaped in (lambda v, k: v.reshape(k, 3), lambda v, k: np.tile(v, k), lambda v, k: np.zeros(k)):
        assert message(TracerEscapeError, shaped, V, K).endswith(remedy)


def test_an_escape_that_numpy_hides_is_told_from_another_error():
    def caught(t):
        with contextlib.suppress(TypeError):
            ASKED["its float"][0](t)
        raise ValueError("another")

    with pytest.raises(ValueError, match=r"^another$"):
        traced(caught, S)


# ---- errors that user code handles -----------------------------------------------------------------------------------


def decides(x):
    return x if x > 0.3 else -x


def is_found(x):
    return {0.5: 2.0}[x]


def reads(x):
    return TABLE[int(4 * x) :].sum()


def without_rule(x):
    return np.busday_offset(x, x)


def by_except(x, ask):
    try:
        return ask(x)
    except Exception:  # noqa: BLE001 - a user's own
        return x * x


def by_one_of_several(x, ask):
    try:
        try:
            return ask(x)
        except (KeyError, TypeError, NotImplementedError):
            pass
    except:  # noqa: E722
        pass
    return x * x


def by_suppress(x, ask):
    with contextlib.suppress(TypeError, NotImplementedError):
        return ask(x)
    return x * x


ROWS = {
    "vmap": lambda f: fnad.vmap(f)(np.array([0.1, 0.5, 0.2])),
    "jit": lambda f: fnad.jit(fnad.vmap(f))(np.array([0.1, 0.5, 0.2])),
    "scan": lambda f: fnad.scan(lambda c, x: (c, f(x)), 0.0, np.array([0.1, 0.5, 0.2]))[1],
    "map": lambda f: fnad.map(f, np.array([0.1, 0.5, 0.2])),
}


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("handling", [by_except, by_one_of_several, by_suppress], ids=lambda f: f.__name__)
@pytest.mark.parametrize(
    ("ask", "error"),
    [
        (decides, TracerEscapeError),
        (is_found, TracerEscapeError),
        (reads, TracerEscapeError),
        (without_rule, UnsupportedFunctionError),
    ],
    ids=lambda each: each.__name__,
)
def test_an_error_where_a_number_is_none_is_not_for_user_code_to_handle(rows, handling, ask, error):
    """It would go on where Python does not, with another result. Under `vmap` Python decides for each row."""
    if ask in (decides, reads) and rows in (ROWS["vmap"], ROWS["jit"]):
        np.testing.assert_allclose(rows(lambda x: handling(x, ask)), [ask(x) for x in (0.1, 0.5, 0.2)])
        return
    with pytest.raises(error):
        rows(lambda x: handling(x, ask))


def by_its_name(x):
    try:
        return decides(x)
    except (KeyError, fnad.errors.TracerEscapeError):
        return x * x


def by_the_base(x):
    with contextlib.suppress(fnad.errors.FnadError):
        return decides(x)
    return x * x


@pytest.mark.parametrize("function", [by_its_name, by_the_base])
def test_an_error_that_user_code_names_is_handled(function):
    for name, transform in ROWS.items():
        np.testing.assert_allclose(
            transform(function), [-0.1, 0.5, -0.2] if name in ("vmap", "jit") else [0.01, 0.25, 0.04]
        )


@pytest.mark.parametrize(
    "ask",
    [
        lambda x: {"a": x}["b"],
        lambda x: x.absent,
        lambda x: TABLE[3] * x,
        lambda x: hash(np.stack([x, x])),
        lambda x: float(np.stack([x, x])),
        lambda x: bool(np.stack([x, x])),
        lambda x: np.ones(2) @ np.ones((3, 3)) * x,
    ],
)
def test_an_error_that_a_number_or_array_is_too_is_handled(ask):
    for transform in ROWS.values():
        np.testing.assert_allclose(transform(lambda x: by_except(x, ask)), [0.01, 0.25, 0.04])
    assert fnad.grad(by_except)(0.5, ask) == 1.0


# ---- into ordinary arrays --------------------------------------------------------------------------------------------


def test_a_traced_element_of_an_ordinary_array_is_refused():
    def f(t):
        c = TABLE
        c[0] = t
        return c

    expected = f"a traced value of aval f64[] was written into an ordinary array\n{where(f, -2)}\n  {STORE}"
    assert message(MutationError, f, S) == expected


def test_a_traced_slice_of_an_ordinary_array_is_refused():
    def f(v):
        c = TABLE
        c[:] = v
        return c

    expected = f"a traced value of aval f64[3] was written into an ordinary array\n{where(f, -2)}\n  {STORE}"
    assert message(MutationError, f, V) == expected


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("numpy.copyto", lambda t: np.copyto(TABLE, t)),
        ("numpy.copyto", unconverted("lambda t: np.full_like(np.zeros(3), t[0])")),
        ("numpy.put", lambda t: np.put(TABLE, 0, t)),
        ("numpy.add.at", lambda t: np.add.at(TABLE, 0, t[0])),
    ],
)
def test_functions_that_write(name, write):
    text = message(MutationError, write, V)
    remedy = "make the array with fnad.numpy (zeros, empty, full, array) in place of numpy"
    assert text.startswith(f"{name} cannot write a traced value into an ordinary array\n  at ")
    assert text.endswith(FILE if write.__code__.co_filename == "no_source.py" else remedy)


# ---- no rule ---------------------------------------------------------------------------------------------------------


def test_a_function_without_a_rule():
    def f(v):
        return np.packbits(v)

    assert message(UnsupportedFunctionError, f, V) == (
        f"numpy.packbits has no rule for traced values\n{where(f)}\n"
        "  compose it from functions that have one, or give it a rule: fnad.register_rule(numpy.packbits, rule)"
    )


@pytest.mark.parametrize("function", [np.packbits, np.unpackbits, np.array2string])
def test_functions_without_a_rule(function):
    assert "has no rule for traced values" in message(UnsupportedFunctionError, lambda v: function(v), np.eye(2))


# ---- what is right ---------------------------------------------------------------------------------------------------


def test_an_object_among_others():
    def f(t, v):
        assert v is not None
        assert hasattr(v, "__array_interface__")  # as an array has, though NumPy finds none
        return copy.deepcopy([v, t]), copy.copy(v) * 2

    traced(f, S, V)


def test_comparison_with_what_is_no_number():
    check(lambda v: (v * (v is None), v), V)
    for other in ("a", None, object()):
        with pytest.raises(TypeError):
            traced(lambda v: v + other, V)  # noqa: B023


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_masked_arrays_are_not_named_where_there_are_none():
    with pytest.raises(TracerEscapeError, match="NumPy's functions take traced values as they are"):
        fnad.grad(lambda x: np.sum(np.matrix([[x, 1], [0, x]])))(2.0)


def test_an_integer_that_is_too_large_is_not_for_user_code_to_handle():
    def f(x):
        try:
            return x + int(1e300 * x) // int(1e299)
        except OverflowError:
            return x * x

    for run in (fnad.grad, fnad.jit):
        with pytest.raises(IntegerRangeError, match="too large for i64"):
            run(f)(1.5)

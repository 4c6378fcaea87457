"""The text of a traced value is that of its value, with a guard unless it is only shown; an error where it has none."""

import contextlib
import dataclasses
import io
import logging
import warnings

import numpy as np
import pytest

import fnad
from fnad.errors import ControlFlowWarning, PathsWarning, TracerEscapeError, UsedAfterTraceError

pytestmark = pytest.mark.filterwarnings("ignore::fnad.errors.RetraceWarning")  # what is read changes on purpose

VALUES = [
    *(2.0, 10.25, -0.0, float("nan"), 3, True, 2.5j, complex(0.0, -0.0)),
    *(np.float64(3.125), np.float32(0.1), np.int8(7), np.uint64(2**63), np.bool_(False), np.array(1.5)),
    *(np.array([1.0, -0.0, np.nan]), np.array([1.0, 0.0, np.nan]), np.array([[1, 2], [3, 4]]), np.zeros((0, 2))),
    np.array([True, False]),
    np.array([complex(1, -0.0), complex(np.nan, 0.0)]),
]


@dataclasses.dataclass
class Point:
    x: object


TEXTS = {
    "str": str,
    "repr": repr,
    "an f-string": lambda x: f"a {x} {x!r} {x!s:>9}",
    "format": lambda x: "{} {!r}".format(x, x),  # noqa: UP032
    "percent": lambda x: "%s %r" % (x, x),  # noqa: UP031
    "containers": lambda x: f"{[x]} {(x, {'x': x})}",
    "a dataclass": lambda x: repr(Point(x)),
}


def number_of(text):
    """Return what tells texts apart."""
    return float(sum(i * ord(c) for i, c in enumerate(text)))


@pytest.mark.parametrize("name", TEXTS)
def test_text_is_that_of_the_value(name):
    make = TEXTS[name]
    for value in VALUES:
        expected = make(value)
        found = []
        fnad.grad(lambda y: (found.append(make(value)), y)[1])(1.0)  # noqa: B023  # where it is no traced one

        def of_inner(x):
            fnad.grad(lambda y: (found.append(make(x)), y)[1])(1.0)  # noqa: B023
            return 1.0

        fnad.jit(of_inner)(value)
        assert found == [expected, expected]


def test_text_is_a_guard():
    for name, make in TEXTS.items():
        fast = fnad.jit(lambda x: number_of(make(x)))  # noqa: B023
        for _ in range(2):
            for value in (0.0, -0.0, 1.5, float("nan"), 1.5, 0.0):
                assert fast(value) == number_of(make(value)), name
    fast = fnad.jit(lambda x: number_of(str(x)))
    arrays = [np.array([0.0, 1.0]), np.array([-0.0, 1.0]), np.array([0.0, np.nan]), np.array([0.0, 1.5])]
    for value in arrays * 2:
        assert fast(value) == number_of(str(value))


def test_a_number_that_is_formatted_by_percent():
    def formatted(x):
        text = "x %.3f"
        text %= x
        return number_of(text + "%.2f %g" % (x, x)) + number_of("%.1f" % x) + number_of("%(x)9e" % {"x": x})  # noqa: UP031

    fast = fnad.jit(formatted)
    for value in (2.25, -0.0, 0.0, float("nan"), 2.25, np.float32(0.1), 3, True, np.array(1.5)):
        assert fast(value) == formatted(value)
    for value in (2.5j, np.ones(2)):
        with pytest.raises(TypeError, match=r"must be real number|a real number, not|only 0-dim|only length-1"):
            formatted(value)
        with pytest.raises(TypeError, match=r"must be real number|a real number, not|only 0-dim|only length-1"):
            fast(value)
    with pytest.warns(ControlFlowWarning, match="text of a number is constant"):
        assert fnad.grad(lambda x: x * len("%.1f" % x))(2.5) == 3.0  # noqa: UP031
    with pytest.raises(TracerEscapeError, match=r"asked for its float"):
        fnad.jit(lambda x: x.__float__() % 2.0)(2.5)


@pytest.mark.slow
def test_every_text_is_a_path_that_is_kept():
    """It is traced once, as any other path."""
    many = [np.array([1.0, 2.0]), np.array([1.0, np.nan]), np.array([1.0, -0.0]), np.array([1.0, 0.0])]
    numbers = [1.5, -0.0, 0.0, float("nan"), np.inf, 2.5, 1e-300]
    for values in (
        numbers,
        [np.float32(x) for x in (1.5, -0.0, 0.0, np.nan, 0.1)],
        [complex(x, y) for x in (0.0, -0.0, np.nan) for y in (0.5, -0.0, 0.0)],
        [np.uint64(x) for x in (2**63, 2**64 - 1, 0)],
        many,
        [1j * x for x in many],
        [np.arange(4), np.arange(4)[::-1].copy()],
    ):
        traced = []
        fast = fnad.jit(lambda x: (traced.append(1), number_of(str(x)))[1])  # noqa: B023
        for _ in range(3):
            assert [fast(value) for value in values] == [number_of(str(value)) for value in values]
        assert len(traced) == len(values) == len(fast.paths())


def test_paths_that_part_at_a_text_say_so():
    fast = fnad.jit(lambda x: x * len(str(x)))
    with pytest.warns(PathsWarning, match=r"test_text.py.*\n.*fnad.callback"):
        assert [fast(n + 0.5) for n in range(66)][-1] == 4 * 65.5
    assert str(fast.paths()[0].decisions[0].answer) == "0.5"


def test_a_text_that_decides():
    def f(x):
        return x**2 if f"{x:.1f}" == "2.0" else 100 * x

    fast = fnad.jit(fnad.grad(f))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ControlFlowWarning)
        assert [fast(x) for x in (2.0, 3.0, 2.04, 2.0)] == [4.0, 100.0, 4.08, 4.0]
        assert fnad.jit(fnad.grad(lambda x, y: len(str(x)) * y, argnums=1))(10.25, 1.0) == 5.0
    with pytest.warns(ControlFlowWarning, match="text of a number is constant"):
        fnad.grad(lambda x: x * len(str(x)))(2.5)


def test_text_of_a_value_of_an_inner_trace():
    def f(x):
        return fnad.grad(lambda y: y * len(f"{y * x}"))(x)

    fast = fnad.jit(f)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ControlFlowWarning)
        assert [fast(x) for x in (0.5, 0.25, 4.0, 0.5)] == [4.0, 6.0, 4.0, 4.0]


# ---- shown -----------------------------------------------------------------------------------------------------------


def in_print(x):
    print("x", x, f"{x:.2f}", [x], "{}".format(x), "%.2f" % x, sep=" | ")  # noqa: UP031, UP032


def in_print_over_lines(x):
    print(
        "x",
        f"""
        {x!r}
        """,
        str(x).rjust(9) if x is not None else "",
    )


def in_a_warning(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.warn(f"x is {x}", stacklevel=1)


def in_a_log(x):
    logging.getLogger("fnad.test").warning("x is %s, %r and %.2f", x, x, x)


def in_a_log_as_text(x):
    logging.getLogger("fnad.test").warning(f"x is {x}")  # noqa: G004


def in_print_of_an_object(x):
    print(Point(x))


SHOWN = [in_print, in_print_over_lines, in_a_warning, in_a_log, in_a_log_as_text, in_print_of_an_object]


@pytest.mark.parametrize("show", SHOWN)
def test_what_is_shown_is_no_guard(show, capsys):
    calls = []
    fast = fnad.jit(lambda x: (calls.append(1), show(x), x * 2)[2])
    for value in (0.5, 1.5, 2.5):
        assert fast(value) == 2 * value
    fast.paths()
    assert "decisions: none" in str(fnad.explain(lambda x: (show(x), x)[1], 0.5))
    printed = capsys.readouterr().out
    assert "Tracer" not in printed
    if "print" in show.__name__:
        assert "0.5" in printed


def test_a_value_in_an_exception():
    def f(x):
        if x > 1:
            raise ValueError(f"too large: {x}")
        assert x > 0, f"not positive: {x}"
        return x

    for run in (fnad.grad(f), fnad.jit(f)):
        with pytest.raises(ValueError, match=r"too large: 3\.0$"):
            run(3.0)
        with pytest.raises(AssertionError, match=r"not positive: -1\.0"):
            run(-1.0)


KEPT = []

GUARDED = {
    "stored": lambda x: KEPT.append(str(x)),
    "named": lambda x: print(text := str(x), len(text)),
    "printed into a file": lambda x: print(x, file=io.StringIO()),
    "printed elsewhere": lambda x: print_elsewhere(x),
    "handed on": lambda x: print(handed(f"{x}")),
    "another print": lambda x: (lambda print: print(f"{x}"))(handed),  # noqa: A006
}


def handed(text):
    KEPT.append(text)
    return text


def print_elsewhere(x):
    with contextlib.redirect_stdout(io.StringIO()):
        print(x)


@pytest.mark.parametrize("name", GUARDED)
def test_what_may_come_back_is_a_guard(name):
    assert "-> 0.5" in str(fnad.explain(lambda x: (GUARDED[name](x), x)[1], 0.5))


# ---- where there is no value -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*TEXTS, "percent of a float"])
def test_computed_with_where_there_is_no_value(name):
    make = TEXTS.get(name, lambda x: "%.2f" % x)  # noqa: UP031
    with pytest.raises(TracerEscapeError, match=r"(?s)was asked for its text.*fnad.callback\(print, x\)"):
        fnad.scan(lambda c, x: (c + len(make(x)), None), 0.0, np.ones(2))


def test_shown_where_there_is_no_value(capsys):
    def step(c, x):
        print(c, f"{x}", [x])
        if c is None:
            raise ValueError
        return c + x, None

    assert fnad.scan(step, 0.0, np.ones(2))[0] == 2.0
    assert "Tracer(f64[]) Tracer(f64[]) [Tracer(f64[])]" in capsys.readouterr().out

    def failing(c, x):
        raise ValueError(f"no {x}")

    with pytest.raises(ValueError, match=r"no Tracer\(f64\[\]\)"):
        fnad.scan(failing, 0.0, np.ones(2))


def test_text_after_the_trace():
    kept = []
    fnad.grad(lambda x: (kept.append(x), x)[1])(1.0)
    assert repr(kept[0]) == "Tracer(f64[])"
    for make in (str, "{}".format, "{:.1f}".format, lambda x: "%.1f" % x):  # noqa: UP031
        with pytest.raises(UsedAfterTraceError):
            make(kept[0])

"""User functions that other code calls: they compute with traced values in lists, and what they read is compared."""

import collections
import concurrent.futures
import contextlib
import dataclasses
import functools
import operator
import sys
import types

import numpy as np
import pytest

import fnad

SCALE = 2.0


def scaled(x):
    return np.array([x, SCALE * x]).sum()


def scale():
    return SCALE


@contextlib.contextmanager
def lent(x):
    yield scaled(x)


def within(x):
    with lent(x) as y:
        return y


def on_exit(x):
    found = []
    with contextlib.ExitStack() as stack:
        stack.callback(kept, found, x)
    return found[0]


def kept(found, x):
    found.append(scaled(x))


@functools.singledispatch
def dispatched(x):
    return scaled(x)


class Descriptor:
    def __get__(self, holder, kind=None):
        return scaled(holder.x)


class Holder:
    described = Descriptor()

    def __init__(self, x=1.0):
        self.x = x

    def __class_getitem__(cls, x):
        return scaled(x)

    def method(self, x, factor=1.0):
        return factor * scaled(x)

    @functools.singledispatchmethod
    def dispatched(self, x):
        return scaled(x)


@dataclasses.dataclass
class Filled:
    scale: float = dataclasses.field(default_factory=scale)


HOLDER = Holder()
MADE = collections.defaultdict(scale)
ORDER = functools.cmp_to_key(lambda a, b: (a - b) * (SCALE - 3))  # pyright: ignore[reportOperatorIssue]
NESTED = types.SimpleNamespace(inner=types.SimpleNamespace(value=1.0))


def made(x):
    MADE.clear()
    return x * MADE["a"]


def imported(x):
    from tests.trace.test_calls_by_others import SCALE as FOUND  # noqa: PLC0415

    return FOUND * x


CALLS = {
    "contextmanager": within,
    "ExitStack": on_exit,
    "singledispatch": lambda x: dispatched(x),
    "singledispatchmethod": lambda x: HOLDER.dispatched(x),
    "descriptor": lambda x: Holder(x).described,
    "__class_getitem__": lambda x: Holder[x],
    "methodcaller": lambda x: operator.methodcaller("method", x)(HOLDER),
    "methodcaller by name": lambda x: operator.methodcaller("method", x, factor=2.0)(HOLDER),
    "default_factory": lambda x: x * Filled().scale,
    "defaultdict": made,
    "defaultdict made in the trace": lambda x: x * collections.defaultdict(scale)["a"],
    "cmp_to_key": lambda x: x * sorted([1.0, 2.0], key=ORDER)[0],
    "from import": imported,
}


@pytest.fixture
def change(monkeypatch):
    """Return a function that sets the global variable that the functions read."""
    return lambda value: monkeypatch.setattr(sys.modules[__name__], "SCALE", value)


@pytest.mark.parametrize("f", CALLS.values(), ids=CALLS)
def test_what_other_code_calls_is_traced_and_compared(f, change):
    compiled = fnad.jit(fnad.value_and_grad(f))
    for value in (2.0, 2.0, 5.0, 7.0):
        change(value)
        own = f(3.0)
        assert compiled(3.0) == (own, own / 3.0)  # all are linear
        assert fnad.grad(f)(3.0) == own / 3.0


def test_the_functions_have_their_own_code_after_a_trace():
    codes = [f.__code__ for f in (scale, dispatched.__wrapped__, lent.__wrapped__, Descriptor.__get__)]
    for f in CALLS.values():
        fnad.grad(f)(3.0)
    assert codes == [f.__code__ for f in (scale, dispatched.__wrapped__, lent.__wrapped__, Descriptor.__get__)]
    assert not any("HOOKS" in str(code.co_consts) or "namespace(" in str(code.co_consts) for code in codes)


@pytest.mark.filterwarnings("ignore::fnad.errors.RetraceWarning")
def test_what_another_thread_reads_is_read_anew(change):
    def f(x):
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            return x * pool.submit(scale).result()

    compiled = fnad.jit(f)
    for value in (2.0, 2.0, 5.0):
        change(value)
        assert compiled(1.0) == value


def test_dotted_names_of_attrgetter_are_compared():
    compiled = fnad.jit(lambda x: x * operator.attrgetter("inner.value")(NESTED))
    for value in (1.0, 2.0, 3.0):
        NESTED.inner.value = value
        assert compiled(1.0) == value


def write(found, x):
    found.append(x * SCALE)


FUNCTIONS, TABLE, PARTIAL = [write], {"write": write}, functools.partial(write)


class Writer:
    def write(self, found, x):
        write(found, x)


WRITER = Writer()


def given(x, function):
    found = []
    with contextlib.ExitStack() as stack:
        stack.callback(function, found, x)
    return found[0]


GIVEN = {
    "default": lambda x, function=write: given(x, function),
    "element of a list": lambda x: [given(x, function) for function in FUNCTIONS][0],
    "value of a dict": lambda x: [given(x, function) for function in TABLE.values()][0],
    "partial function": lambda x: given(x, PARTIAL),
    "bound method": lambda x: given(x, WRITER.write),
}


@pytest.mark.parametrize("f", GIVEN.values(), ids=GIVEN)
def test_what_functions_read_that_library_code_is_given_is_compared(f, change):
    compiled = fnad.jit(f)
    for value in (2.0, 2.0, 5.0):
        change(value)
        assert compiled(1.0) == value

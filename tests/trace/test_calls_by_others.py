"""User functions that other code calls: they compute with traced values in lists, and what they read is compared."""

import bisect
import collections
import concurrent.futures
import contextlib
import contextvars
import copy
import dataclasses
import functools
import heapq
import importlib.util
import inspect
import itertools
import json
import operator
import pickle
import queue
import re
import sched
import signal
import sys
import time
import types
import weakref

import numpy as np
import pytest
import scipy.integrate
import scipy.ndimage
import scipy.optimize

import fnad
from tests.together import together

SCALE = 2.0


class Base:
    pass


def scaled(x):
    return np.array([x, SCALE * x]).sum() if type(x) is float else np.nan


def scale(*_, **__):
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
FORMATS = "{0.inner.value}", "{0[0].value} {1}", "{0.scaled:.{1.digits}f}"
DIGITS = types.SimpleNamespace(digits=2)
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


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x * float(FORMATS[0].format(NESTED)),
        lambda x: x * float("{:{width.inner.value:.0f}.1f}".format(NESTED.inner.value, width=NESTED)),
        lambda x: x * float(FORMATS[1].format([NESTED.inner], 1).split()[0]),
        lambda x: x * inspect.getattr_static(NESTED.inner, "value"),
        lambda x: x * len(Base.__subclasses__()),
    ],
)
@pytest.mark.filterwarnings("ignore::fnad.errors.RetraceWarning")
def test_attributes_that_code_in_c_reads_are_compared(f):
    compiled, derivative = fnad.jit(f), fnad.grad(f)
    made = []
    for value in (1.0, 2.0, 3.0):
        NESTED.inner.value = value
        made.append(type("Derived", (Base,), {}))
        assert compiled(1.0) == derivative(1.0) == f(1.0)


@functools.lru_cache
def answer(x):
    return x * SCALE


@pytest.mark.filterwarnings("ignore::fnad.errors.RetraceWarning")
def test_answers_of_a_cache_are_compared(change):
    compiled = fnad.jit(lambda x: x * answer(2.0))
    for value in (3.0, 4.0, 5.0):
        answer.cache_clear()
        change(value)
        assert compiled(1.0) == answer(2.0) == 2 * value
        change(value + 10)
        assert compiled(1.0) == answer(2.0) == 2 * value  # until the cache is cleared
        answer.cache_clear()
        assert compiled(1.0) == answer(2.0) == 2 * value + 20


def key(a, b=0.0):
    return (a - b) * (SCALE - 3)


def text(_):
    return str(SCALE)


class Writer:
    def write(self, found, x):
        kept(found, x)


WRITER, PARTIAL = Writer(), functools.partial(kept)
FUNCTIONS, TABLE = [kept], {"kept": kept}
ENCODER = json.JSONEncoder(default=scale)
CACHE = functools.lru_cache(scale)
PANDAS = importlib.import_module("pandas") if importlib.util.find_spec("pandas") else None


class Money:
    """A number whose operators read the global variable."""

    def __init__(self, amount):
        self.amount = amount

    def __add__(self, other):
        return Money(self.amount + (SCALE - 1) * other.amount)

    @property
    def scaled(self):
        return SCALE * self.amount


SUM = np.frompyfunc(lambda a, b: a * b * SCALE, 2, 1)
MONEY = np.array([Money(1.0), Money(2.0)], dtype=object)


def given(function, x):
    found = []
    with contextlib.ExitStack() as stack:
        stack.callback(function, found, x)
    return found[0]


def closed(x):
    found, stack = [], contextlib.ExitStack()
    stack.callback(kept, found, x)
    stack.close()
    return found[0]


def scheduled(x):
    found, scheduler = [], sched.scheduler(time.monotonic, lambda _: None)
    scheduler.enter(0, 1, kept, (found, x))
    scheduler.run()
    return found[0]


def finalized(x):
    found, value = [], Holder()
    weakref.finalize(value, kept, found, x)
    del value
    return found[0]


def sort(x, order):
    values = [1.0, 2.0]
    values.sort(key=order)
    return x * values[0]


def cached(x):
    CACHE.cache_clear()
    return x * CACHE()


def looked_up(x, find):
    value = find(MADE)
    MADE.clear()
    return x * value


@dataclasses.dataclass
class Derived(Filled):
    values: object = dataclasses.field(default_factory=lambda: scale)
    function: object = scale


def derived(x):
    made = Derived()
    assert made.function is scale
    assert made.values is scale
    return x * made.scale


def class_made(x):
    return x * type("Made", (), {"value": property(scale)})().value


BY_LIBRARY = CALLS | {
    "default": lambda x, function=kept: given(function, x),
    "element of a list": lambda x: [given(function, x) for function in FUNCTIONS][0],
    "value of a dict": lambda x: [given(function, x) for function in TABLE.values()][0],
    "partial function": lambda x: given(PARTIAL, x),
    "bound method": lambda x: given(WRITER.write, x),
    "close": closed,
    "scheduler": scheduled,
    "finalizer": finalized,
    "context": lambda x: contextvars.copy_context().run(scaled, x),
    "sort": lambda x: sort(x, key),
    "sort by cmp_to_key": lambda x: sort(x, ORDER),
    "min by cmp_to_key": lambda x: x * min([1.0, 2.0], key=ORDER),
    "heapq.merge": lambda x: x * next(heapq.merge([1.0], [2.0], key=key)),
    "heapq.nsmallest": lambda x: x * heapq.nsmallest(1, [1.0, 2.0], key=key)[0],
    "bisect": lambda x: x * (1 + bisect.bisect([1.0, 2.0], -3, key=key)),
    "groupby": lambda x: x * [k for k, _ in itertools.groupby([1.0], key=key)][0],
    "iter": lambda x: x * next(iter(scale, None)),
    "re.sub": lambda x: x * float(re.sub("a", text, "a")),
    "keyword": lambda x: x * float(re.sub("a", string="a", repl=text)),
    "star": lambda x: x * float(re.sub(*("a", text, "a"))),
    "method in C": lambda x: x * float(re.compile("a").sub(text, "a")),
    "partial of a library": lambda x: x * float(functools.partial(re.sub, "a", text)("a")),
    "json.dumps": lambda x: x * float(json.dumps(object(), default=scale)),
    "json.loads": lambda x: x * json.loads("{}", object_hook=scale),
    "object of a library": lambda x: x * float(ENCODER.encode(object())),
    "cache made in the trace": lambda x: x * functools.lru_cache(scale)(),
    "cache": cached,
    "defaultdict, cleared": lambda x: looked_up(x, lambda made: made["b"]),
    "defaultdict, by a library": lambda x: looked_up(x, operator.itemgetter("b")),
    "ChainMap": lambda x: looked_up(x, lambda made: collections.ChainMap(made)["b"]),
    "derived dataclass": derived,
    "property of a class made in the trace": class_made,
    "frompyfunc": lambda x: x * float(np.frompyfunc(scale, 1, 1)(1.0)),
    "frompyfunc, outside": lambda x: x * float(SUM(1.0, 2.0)),
    "frompyfunc.reduce, outside": lambda x: x * float(SUM.reduce(np.array([1.0, 2.0], dtype=object))),
    "sum of objects": lambda x: x * MONEY.sum().amount,
    "reduce of objects": lambda x: x * functools.reduce(operator.add, MONEY.tolist()).amount,
    "property in a format": lambda x: x * float(FORMATS[2].format(MONEY[0], DIGITS)),
    "property in a format map": lambda x: x * float("{a.scaled}".format_map({"a": MONEY[0]})),
    "property in str.format": lambda x: x * float(str.format("{.scaled}", MONEY[1])),
    "fnad.tree": lambda x: fnad.tree.map(scaled, [x])[0],
    "scipy.integrate": lambda x: x * scipy.integrate.quad(scale, 0, 1)[0],
    "scipy.ndimage": lambda x: x * scipy.ndimage.generic_filter(np.ones(3), scale, size=1)[0],
    "scipy.optimize": lambda x: x * scipy.optimize.brentq(lambda t: t - scale(), -10, 10),
}
if PANDAS is not None:
    BY_LIBRARY["pandas"] = lambda x: x * PANDAS.Series([1.0]).apply(scale).iloc[0]
    BY_LIBRARY["pandas, by name"] = lambda x: x * PANDAS.DataFrame({"a": [1.0, 2.0]}).agg({"a": scale}).iloc[0]


@pytest.mark.filterwarnings("ignore::fnad.errors.RetraceWarning")
def test_functions_that_libraries_call_are_traced_and_compared(change):
    functions = (scale, scaled, kept, key, text, Writer.write, dispatched.__wrapped__, lent.__wrapped__)
    codes = {f: f.__code__ for f in functions}
    seen = set()

    def call(f, x):
        found = f(x)
        seen.update(function.__name__ for function, code in codes.items() if function.__code__ is not code)
        return found

    with together() as check:
        for name, f in BY_LIBRARY.items():
            compiled = fnad.jit(lambda x, f=f: call(f, x))
            with check(name):
                for value in (2.0, 5.0):
                    change(value)
                    assert compiled(3.0) == f(3.0)
                assert 3.0 * fnad.grad(lambda x, f=f: call(f, x))(3.0) == f(3.0)  # all are linear
    assert seen == set()


def test_functions_that_libraries_keep_are_the_own_ones():
    kept_after = []

    def keeping(x):
        made = [{"f": scaled}, collections.OrderedDict(f=scaled), collections.UserDict(f=scaled)]
        kept_after[:] = [*[each["f"] for each in made], functools.partial(scaled).func, weakref.ref(scaled)()]
        kept_after.extend([collections.deque([scaled])[0], types.SimpleNamespace(f=scaled).f, copy.copy(scaled)])
        calls, place = queue.SimpleQueue(), {scaled: 1.0}
        calls.put(scaled)
        with contextlib.ExitStack() as stack:
            kept_after.extend([calls.get(), pickle.loads(pickle.dumps(scaled)), inspect.unwrap(scaled)])
            assert stack.callback(scale) is scale
        assert collections.defaultdict(scale).default_factory is scale
        assert next(filter(callable, [scaled])) is scaled
        assert sorted([scaled], key=id)[0] is scaled
        assert place[scaled] == place.get(scaled) == 1.0
        signal.signal(signal.SIGTERM, signal.signal(signal.SIGTERM, scale))
        return scaled(x)

    assert fnad.grad(keeping)(3.0) == fnad.grad(fnad.jit(keeping))(3.0) == 1.0 + SCALE
    assert all(found is scaled for found in kept_after)

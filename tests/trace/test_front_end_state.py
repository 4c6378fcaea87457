"""After a trace nothing is other than before, whatever ended it; and other threads see no trace."""

import gc
import importlib.util
import math
import os
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from random import Random
from types import FunctionType, ModuleType

import numpy as np
import pytest
import scipy.interpolate
import scipy.sparse
import scipy.special
import scipy.stats

import fnad
from fnad import blocks, codes
from fnad.trace import conversion, hooks, recording, stand_ins, user_methods
from fnad.trace.recording import RECORDING
from fnad.trace.user_methods import METHODS
from tests import together
from tests.locks import takes_lock


class Meta(type):
    def __call__(cls, *args):
        return super().__call__(*args)


class Point(metaclass=Meta):
    """A class whose methods Python calls."""

    def __init__(self, x):
        self.x = float(x)

    def __add__(self, other):
        return Point(self.x + math.exp(other.x) * 0 + other.x)

    @property
    def double(self):
        return float(self.x) * 2

    def __call__(self, y):
        return float(y) + self.x


def through_all(x):
    """A function that calls methods of `Point` and functions of SciPy."""
    p = Point(x) + Point(1.0)
    return p.double + p(x) + float(scipy.special.logsumexp([x, 1.0])) + scipy.stats.norm.pdf(x)


TRUTH = 4 + math.exp(1.5) / (math.exp(1.5) + math.e) - 1.5 * math.exp(-1.125) / math.sqrt(2 * math.pi)
MEMBERS = [Meta.__call__, Point.__init__, Point.__add__, vars(Point)["double"].fget, Point.__call__]
CODES = [function.__code__ for function in MEMBERS]


def assert_nothing_is_left():
    assert METHODS.blocks.under_way == []
    assert [f.__code__ for f in MEMBERS] == CODES
    assert all(a is b for a, b in zip([f.__code__ for f in MEMBERS], CODES, strict=True))
    assert METHODS._users == {}
    assert RECORDING.values == ()
    assert Point(2).double == 4


def trace():
    assert fnad.grad(through_all)(1.5) == pytest.approx(TRUTH)
    assert fnad.jit(lambda x: x + len(CODES))(1.5) == 1.5 + len(CODES)  # whose reads are recorded


@pytest.fixture(autouse=True)
def _as_before():
    trace()
    assert_nothing_is_left()
    yield
    trace()
    assert_nothing_is_left()


class Stop(BaseException):
    pass


RAISED = [ValueError("v"), KeyboardInterrupt(), SystemExit(3), RecursionError("r"), GeneratorExit(), Stop()]


@pytest.mark.parametrize("error", RAISED, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("transform", [fnad.grad, fnad.jit, fnad.vmap, lambda f: fnad.jit(fnad.grad(f))])
def test_an_exception_leaves_nothing_changed(error, transform):
    def f(x):
        through_all(x)
        raise error

    x = np.array([1.5]) if transform is fnad.vmap else 1.5
    with pytest.raises(type(error)):
        transform(f)(x)
    assert_nothing_is_left()


def stopped_at(number, files):
    """A tracer for `sys.settrace` that raises `KeyboardInterrupt` at the line of this number in these files.

    Lines of loops count twice each.
    """
    seen = Counter()

    def local(frame, event, _):
        if event != "line" or takes_lock(frame.f_code.co_filename, frame.f_lineno):
            return local
        seen[frame.f_code, frame.f_lineno] += 1
        if seen[frame.f_code, frame.f_lineno] <= 2:
            seen["all"] += 1
            if seen["all"] == number:
                raise KeyboardInterrupt
        return local

    return lambda frame, event, _: local if frame.f_code.co_filename in files else None


def interrupted(call, files):
    """Call with an interrupt at each third line that runs in these files, one after the other; how many there were.

    The first one is drawn.
    """
    number = Random(together.DRAW).randrange(3) - 2
    while True:
        number += 3
        before = sys.gettrace()
        sys.settrace(stopped_at(number, files))
        try:
            call()
        except KeyboardInterrupt:
            pass
        else:
            return number
        finally:
            sys.settrace(before)
        yield number


FILES = {user_methods.__file__, blocks.__file__}


def test_an_interrupt_at_any_line_leaves_nothing_changed_after_the_next_trace():
    left_at_once = 0
    number = 0
    for number in interrupted(trace, FILES):  # noqa: B007 - the last one is what counts
        left_at_once += METHODS.blocks.under_way != [] or [f.__code__ for f in MEMBERS] != CODES
        trace()
        assert_nothing_is_left()
    assert number > 50
    print(number, left_at_once)


@pytest.mark.slow
def test_an_interrupt_while_functions_are_entered_loses_none():
    def again():
        stand_ins.WAITING.add("scipy.special")
        stand_ins.STAND_INS.pop(id(scipy.special.logsumexp))
        stand_ins.MADE.pop(id(scipy.special.logsumexp), None)
        trace()

    for _ in interrupted(again, {stand_ins.__file__, user_methods.__file__}):
        trace()
        assert_nothing_is_left()
        assert stand_ins.WAITING.isdisjoint(sys.modules)


@pytest.mark.slow
def test_an_interrupt_of_a_conversion_is_made_good(tmp_path):
    number = count()

    def fresh():
        name = f"fresh{next(number)}"
        path = tmp_path / f"{name}.py"
        path.write_text(
            "class C:\n    def __init__(self, x): self.x = float(x)\n\ndef f(x):\n    return C(x).x * (lambda y: float(y))(x)\n"  # noqa: E501
        )
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    current = [fresh()]

    def call():
        current[:] = [fresh()]
        assert fnad.jit(fnad.grad(current[0].f))(3.0) == 6

    for _ in interrupted(call, {conversion.__file__, codes.__file__, hooks.__file__, recording.__file__}):
        assert fnad.jit(fnad.grad(current[0].f))(3.0) == 6
        assert_nothing_is_left()


# ---- other ends ------------------------------------------------------------------------------------------------------


def test_a_generator_left_open_leaves_nothing_changed():
    def numbers(x):
        try:
            yield Point(x)
            yield fnad.grad(through_all)(1.5)
        finally:
            ended.append(fnad.grad(through_all)(1.5))

    left, ended = [], []

    def f(x):
        left.append(numbers(x))
        return next(left[-1]).double

    assert fnad.grad(f)(1.5) == 2
    assert_nothing_is_left()
    assert next(left[0]) == pytest.approx(TRUTH)
    assert_nothing_is_left()
    left.clear()
    gc.collect()
    assert ended == [pytest.approx(TRUTH)]
    assert_nothing_is_left()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_fork_in_a_trace_leaves_nothing_changed_in_either_process():
    def f(x):
        y = through_all(x)
        children.append(os.fork())
        return y

    children = []
    parent = os.getpid()
    found = fnad.grad(f)(1.5)
    if os.getpid() != parent:
        ok = False
        try:
            assert_nothing_is_left()
            trace()
            assert_nothing_is_left()
            ok = found == pytest.approx(TRUTH)
        finally:
            os._exit(0 if ok else 1)
    assert_nothing_is_left()
    assert os.waitpid(children[0], 0)[1] == 0


# ---- libraries -------------------------------------------------------------------------------------------------------


def process_state():
    """The values of all names of modules and classes but those of fnad and the tests, and the code of functions."""
    found = {}
    for module in [module for module in sys.modules.values() if isinstance(module, ModuleType)]:
        if module.__name__.partition(".")[0] in ("fnad", "tests", "hypothesis"):  # the last one counts collections
            continue
        found[module.__name__, "class"] = type(module)
        classes = {name: vars(kind) for name, kind in vars(module).items() if type(kind) is type}
        for space, names in [("", vars(module)), *classes.items()]:
            for name, value in tuple(names.items()):
                found[module.__name__, space, name] = value
                if isinstance(value, FunctionType):
                    found[module.__name__, space, name, "code"] = value.__code__
    return found


@pytest.mark.slow
def test_nothing_of_other_modules_is_changed_in_a_trace():
    def f(x):
        y = through_all(x) + np.ma.masked_less(np.array([x, 1.0]), 1.2).sum() + scipy.stats.norm(x, 2.0).cdf(0.3)
        y = y + scipy.interpolate.CubicSpline([0.0, 1.0, 2.0], [x, 1.0, x])(0.5)
        y = y + (scipy.sparse.csr_array(np.eye(2)) @ np.array([x, x])).sum() + scipy.stats.iqr([x, 1.0, 3.0])
        if is_warm[-1]:
            with ThreadPoolExecutor(1) as untraced:  # where no hooks are in the code that reads
                inside.append(untraced.submit(process_state).result())
        return y

    inside, is_warm = [], [False]
    fnad.grad(f)(1.5)  # modules are imported in the first one
    before = process_state()
    is_warm.append(True)
    fnad.jit(fnad.vmap(fnad.grad(f)))(np.array([1.5]))
    assert len(inside[-1]) > 50_000
    assert [key for key, value in inside[-1].items() if before.get(key) is not value] == []


# ---- other threads ---------------------------------------------------------------------------------------------------


def numbers():
    """Numbers and arrays by NumPy, SciPy, `math` and `Point`, each with its class."""
    p = Point(1.5) + Point(2)
    found = [
        p.double,
        p(1),
        math.exp(1.5),
        math.hypot(3, 4),
        float("2.5"),
        int(3.7),
        max(1, 2.5),
        sum([1, 2]),
        type(p.x)(2),
        np.exp([1.0, 2.0]).tolist(),
        np.array([1.5, 2]).sum(),
        np.zeros(2).tolist(),
        np.full(2, 1.5).tolist(),
        np.linalg.norm(np.r_[3.0, 4.0]),
        scipy.special.logsumexp([1.0, 1.5]),
        scipy.stats.norm.pdf(0.5),
        scipy.stats.norm(0, 2).cdf(1.0),
        np.ma.masked_less([1.0, 2.0], 1.5).sum(),
        np.polyfit([0, 1, 2], [1, 2, 3], 1).round(6).tolist(),
    ]
    return [(type(value), value) for value in found]


@pytest.mark.slow
def test_other_threads_see_no_trace():
    truth, stop, wrong, counts = numbers(), threading.Event(), [], []

    def hammer():
        number = 0
        try:
            while not stop.is_set():
                number += 1
                found = numbers()
                if found != truth:
                    wrong.append(found)
        except BaseException as error:  # noqa: BLE001
            wrong.append(error)
        counts.append(number)

    threads = [threading.Thread(target=hammer) for _ in range(4)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    for thread in threads:
        thread.start()
    traces = 0
    try:
        end = time.monotonic() + 10
        for _ in range(20):
            trace()
            traces += 1
            if traces > 10 and time.monotonic() > end:
                break
    finally:
        stop.set()
        sys.setswitchinterval(interval)
        for thread in threads:
            thread.join()
    assert not wrong, wrong[0]
    assert len(counts) == 4
    assert_nothing_is_left()

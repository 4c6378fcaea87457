"""What debuggers, `inspect`, `warnings` and tracebacks show of traced user code: the user's files and lines alone."""

import bdb
import functools
import inspect
import sys
import traceback
import warnings
from pathlib import Path

import numpy as np
import pytest

import fnad


class Point:
    def __init__(self, x):
        look()
        self.x = x

    def moved(self, y):
        look()
        return Point(self.x + y)

    @property
    def double(self):
        look()
        return self.x * 2.0

    def __add__(self, other):
        look()
        return self.x + other

    def __getitem__(self, i):
        look()
        return self.x * i

    def __call__(self, y):
        look()
        return self.x * y


def decorated(function):
    @functools.wraps(function)
    def call(*args):
        return function(*args)

    return call


@decorated
def wrapped(x):
    look()
    return x


def numbers(x):
    look()
    yield x


def plain(x):
    look()
    return x


WAYS = {
    "a function": lambda x: plain(x),
    "of a table": lambda x: {"f": plain}["f"](x),
    "a constructor": lambda x: Point(x).x,
    "a method": lambda x: Point(x).moved(1.0).x,
    "a property": lambda x: Point(x).double,
    "an operator": lambda x: Point(x) + x,
    "an element": lambda x: Point(x)[3],
    "an object": lambda x: Point(x)(2.0),
    "a decorated function": lambda x: wrapped(x),
    "a generator": lambda x: sum(numbers(x)),
    "a comprehension": lambda x: sum([plain(t) for t in (x, x)]),
    "a lambda": lambda x: (lambda t: plain(t))(x),
    "a partial": lambda x: functools.partial(plain, x)(),
    "a key": lambda x: max([x, 1.0], key=lambda t: plain(t)),
    "a map": lambda x: sum(map(plain, [x])),
}
BETWEEN = [WAYS[name] for name in ("a map", "a key", "a property", "an element")]
LOOKS = []


def look():
    """Call what looks around."""
    for each in LOOKS:
        each()


@pytest.fixture(params=WAYS)
def way(request):
    yield WAYS[request.param]
    LOOKS.clear()


TRANSFORMS = (fnad.grad, fnad.jit, lambda f: fnad.jit(fnad.grad(f)))


def within(files):
    """The files after the first that is the user's."""
    return files[next(i for i, file in enumerate(files) if file == __file__) :]


def is_fnads(file):
    return Path(file).is_relative_to(Path(fnad.__file__).parent)


def test_no_frame_of_fnad_is_between_those_of_the_user(way):
    """But those of hooks that ask an object, and of functions that call what they are given."""
    stacks = []

    def f(x):
        return way(x)

    LOOKS.append(lambda: stacks.append([(frame.filename, frame.function) for frame in inspect.stack(0)]))
    for transform in TRANSFORMS:
        transform(f)(0.7)
    assert len(stacks) >= len(TRANSFORMS)
    inside = [file for stack in stacks for file, _ in stack[: stack.index((__file__, "f"))] if is_fnads(file)]
    assert not inside or way in BETWEEN


def test_source_and_names_are_the_users(way):
    seen = []

    def look_at_callers():
        (info,) = inspect.stack(1)[2:3]
        seen.append((info.function, info.code_context[0], inspect.getsource(info.frame)))

    LOOKS.append(look_at_callers)
    fnad.grad(way)(0.7)
    inside = [*seen]
    seen.clear()
    way(0.7)
    assert {*seen} <= {*inside}
    assert seen


def test_warnings_are_of_the_callers_line(way):
    def warn():
        warnings.warn("looked", UserWarning, stacklevel=4)

    LOOKS.append(warn)
    with warnings.catch_warnings(record=True) as plainly:
        warnings.simplefilter("always")
        way(0.7)
    for transform in TRANSFORMS:
        with warnings.catch_warnings(record=True) as traced:
            warnings.simplefilter("always")
            transform(way)(0.7)
        found = {(each.filename, each.lineno) for each in traced if each.category is UserWarning}
        assert found == {(each.filename, each.lineno) for each in plainly}


def test_tracebacks_are_of_the_users_lines(way):
    def fail():
        raise LookupError("looked")

    LOOKS.append(fail)

    def lines(function):
        with pytest.raises(LookupError, match="looked") as caught:
            function(0.7)
        frames = [frame for frame in traceback.extract_tb(caught.value.__traceback__) if frame.filename == __file__]
        return [(frame.name, frame.lineno, frame.colno, frame.end_colno) for frame in frames][1:], caught

    expected, _ = lines(way)
    for transform in TRANSFORMS:
        found, caught = lines(transform(way))
        assert found == expected
        shown = [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]
        if way not in BETWEEN[:2]:
            assert not any(map(is_fnads, within(shown)[2:]))


# ---- a debugger ------------------------------------------------------------------------------------------------------


class Stops(bdb.Bdb):
    """A debugger that notes where it stops, and then continues."""

    def __init__(self):
        super().__init__()
        self.stops = []

    def user_line(self, frame):
        self.stops.append((frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name, sorted(frame.f_locals)))
        self.set_continue()


def stopped(x):
    y = x * 2.0
    z = np.sin(y)  # here
    return inner(z)


def inner(z):
    return z + 1.0  # there


@pytest.mark.parametrize("transform", [*TRANSFORMS, fnad.vmap])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of names in bdb
def test_a_debugger_stops_at_the_users_line(transform):
    lines, first = inspect.getsourcelines(stopped)
    here = first + next(i for i, line in enumerate(lines) if line.endswith("# here\n"))
    lines, first = inspect.getsourcelines(inner)
    there = first + next(i for i, line in enumerate(lines) if line.endswith("# there\n"))
    debugger, before = Stops(), sys.gettrace()
    for line in (here, there):
        assert debugger.set_break(__file__, line) is None
    try:
        x = np.ones(2) if transform is fnad.vmap else 0.7
        found = debugger.runcall(transform(stopped), x)
    finally:
        debugger.clear_all_breaks()
        sys.settrace(before)
    stops = [stop for stop in debugger.stops if stop[0] == __file__]
    assert stops == [(__file__, here, "stopped", ["x", "y"]), (__file__, there, "inner", ["z"])]
    np.testing.assert_array_equal(found, transform(stopped)(x))
